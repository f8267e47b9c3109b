#include "kernels/cuda/plan/matmul_plan.hpp"

#include <algorithm>

#include "common/expects.hpp"
#include "kernels/cuda/device/weight_chunks.hpp"
#include "kernels/cuda/plan/int8_plan.hpp"
#include "kernels/cuda/plan/matmul_group.hpp"
#include "kernels/cuda/plan/matmul_kernels.hpp"
#include "kernels/cuda/plan/plan_context.hpp"

namespace leasehold::cuda {
namespace {

using device::kTileRows;

constexpr std::uint32_t kFewRows = 64;  ///< Results up to which the plan uses the few-rows kernels.
constexpr std::uint32_t kFewWeightRows = 64;  ///< Weight rows per block of a few-rows kernel.
constexpr std::uint32_t kBlocksPerSm = 4;     ///< Few-rows blocks that hide the latency of memory.
constexpr std::uint32_t kManyWeightRows = 128;
constexpr std::uint32_t kFloatOutputs = 4;
constexpr std::uint32_t kTileChoices[] = {1, 2, 4, 8};

/// A kernel has some static shared memory in addition to the dynamic part of its launch.
bool fits(std::uint32_t dynamic_bytes, const DeviceProperties& card) {
  constexpr std::uint32_t kStaticBytes = 128;
  return dynamic_bytes + kStaticBytes <= card.max_shared_bytes;
}

/// The fewest tiles that hold the results, limited by the card's shared memory.
std::uint32_t tiles_for(const MatmulOperands& operands, const DeviceProperties& card) {
  const device::WeightChunk chunk = device::weight_chunk(operands.type);
  std::uint32_t best = 1;
  for (const std::uint32_t tiles : kTileChoices) {
    if (!fits(device::ring_bytes(chunk, device::few_rows_ring(tiles)), card))
      continue;  // not the end: four tiles need fewer stages than two
    best = tiles;
    if (tiles * kTileRows >= results_together(operands)) break;
  }
  return best;
}

/// Columns per block of the many-rows kernels: the narrow kernel if wide blocks would leave SMs
/// idle. 0 if few_launch applies: there are few results, or the card lacks wgmma or shared memory.
std::uint32_t many_columns(MatmulGroup group, const DeviceProperties& card) {
  const MatmulOperands& operands = group.front();
  const std::uint32_t together = results_together(operands);
  if (!card.has_wgmma || together <= kFewRows) return 0;
  const std::uint32_t wide_blocks = row_tiles(group, kManyWeightRows) * blocks_for(together, 128);
  const std::uint32_t columns = wide_blocks < card.n_sms ? 64 : 128;
  const device::RingShape ring = device::many_rows_ring(columns);
  const std::uint32_t bytes = device::ring_bytes(device::weight_chunk(operands.type), ring);
  return fits(bytes, card) ? columns : 0;
}

/// The number of parts into which slices are divided so that about kBlocksPerSm blocks per SM are
/// resident; 1: the launch is not split.
std::uint32_t part_count(MatmulGroup group, const DeviceProperties& card) {
  const MatmulOperands& operands = group.front();
  if (operands.type == TensorType::F32 || is_experts(operands) ||
      operands.n_results > tiles_for(operands, card) * kTileRows)
    return 1;
  const std::uint32_t tiles = row_tiles(group, kFewWeightRows);
  const std::uint32_t slices = device::slice_count(operands.n_in);
  const std::uint32_t wanted = std::min(slices, blocks_for(kBlocksPerSm * card.n_sms, tiles));
  return blocks_for(slices, device::slices_per_part(operands.n_in, wanted));
}

/// The parameters of the matmuls themselves. Prepared tiles already have the selected rows.
device::MatmulParams params_of(MatmulGroup group, const MatmulScratch& scratch,
                               std::uint32_t rows_per_tile) {
  const MatmulOperands& first = group.front();
  device::MatmulParams params = {.gate = first.gate,
                                 .segments = {},
                                 .row_bytes = row_size_bytes(first.type, first.n_in),
                                 .x = scratch.tiles,
                                 .select = scratch.rows_are_prepared ? first.select : nullptr,
                                 .experts = first.experts,
                                 .partials = nullptr,
                                 .counters = nullptr,
                                 .n_segments = static_cast<std::uint32_t>(group.size()),
                                 .accumulate = first.accumulate ? 1u : 0u,
                                 .count = first.count};
  set_segments(params.segments, group, rows_per_tile);
  return params;
}

KernelLaunch few_launch(MatmulGroup group, const MatmulScratch& scratch,
                        const DeviceProperties& card) {
  const MatmulOperands& operands = group.front();
  const std::uint32_t tiles = tiles_for(operands, card);
  device::MatmulParams params = params_of(group, scratch, kFewWeightRows);
  GridSize grid = {.x = row_tiles(group, kFewWeightRows),
                   .y = result_tiles(operands, tiles * kTileRows)};
  const std::uint32_t parts = scratch.partials == nullptr ? 1 : part_count(group, card);
  if (parts > 1) {
    params.partials = scratch.partials;
    params.counters = scratch.counters;
    grid.z = parts;
  }
  return {.kernel = few_rows_kernel(operands.type, tiles),
          .grid = grid,
          .block_threads = 128,
          .shared_bytes =
              device::ring_bytes(device::weight_chunk(operands.type), device::few_rows_ring(tiles)),
          .params = KernelParams(params)};
}

KernelLaunch many_launch(MatmulGroup group, const MatmulScratch& scratch, std::uint32_t columns) {
  const MatmulOperands& operands = group.front();
  return {.kernel = many_rows_kernel(operands.type, columns),
          .grid = {.x = row_tiles(group, kManyWeightRows), .y = result_tiles(operands, columns)},
          .block_threads = 256,
          .shared_bytes = device::ring_bytes(device::weight_chunk(operands.type),
                                             device::many_rows_ring(columns)),
          .params = KernelParams(params_of(group, scratch, kManyWeightRows))};
}

KernelLaunch float_launch(const MatmulOperands& operands) {
  const std::uint32_t columns = results_together(operands) == 1 ? 1 : kTileRows;
  const bool is_f32 = operands.type == TensorType::F32;
  const device::FloatMatmulParams params = {
      .gate = operands.gate,
      .weights = operands.weights,
      .row_bytes = row_size_bytes(operands.type, operands.n_in),
      .x = operands.x,
      .select = operands.select,
      .experts = operands.experts,
      .out = operands.out,
      .bias = operands.bias,
      .n_out = operands.n_out,
      .out_stride = output_stride(operands),
      .n_in = operands.n_in,
      .accumulate = operands.accumulate ? 1u : 0u,
      .type = operands.type,
      .shape = block_shape(operands.type),
      .count = operands.count};
  return {.kernel = is_f32         ? columns == 1 ? "lh_matmul_f32_1" : "lh_matmul_f32_8"
                    : columns == 1 ? "lh_matmul_rows_1"
                                   : "lh_matmul_rows_8",
          .grid = {.x = blocks_for(operands.n_out, kFloatOutputs),
                   .y = result_tiles(operands, columns)},
          .block_threads = 128,
          .params = KernelParams(params)};
}

/// True if the matrix is multiplied as floats, in a launch of its own.
bool is_float(const MatmulOperands& operands) {
  return operands.layout == MatrixLayout::Rows &&
         (operands.type == TensorType::F32 || operands.is_exact);
}

}  // namespace

KernelLaunch plan_prepare_tiles(const MatmulOperands& operands, const device::TileRows& tiles) {
  const std::uint32_t items_per_x = is_experts(operands) ? operands.experts.items_per_x : 1;
  const device::PrepareTilesParams params = {
      .gate = operands.gate,
      .x = operands.x,
      .select = operands.select,
      .tiles = tiles,
      .count = {.is_logit_rows = operands.count.is_logit_rows,
                .per_row = operands.count.per_row / items_per_x}};
  return {.kernel = "lh_prepare_tiles",
          .grid = {.x = blocks_for(operands.n_results, items_per_x)},
          .block_threads = 256,
          .params = KernelParams(params)};
}

std::size_t joined_matmuls(MatmulGroup neighbours) {
  const MatmulOperands& first = neighbours.front();
  if (is_float(first) || is_experts(first)) return 1;
  std::size_t n = 1;
  while (n < std::min<std::size_t>(neighbours.size(), device::kMaxSegments) &&
         neighbours[n].type == first.type && neighbours[n].layout == first.layout &&
         neighbours[n].accumulate == first.accumulate)
    ++n;
  return n;
}

std::vector<KernelLaunch> plan_matmul(MatmulGroup group, const MatmulScratch& scratch,
                                      const DeviceProperties& card) {
  expects(joined_matmuls(group) == group.size(), "one launch computes the matmuls of a group");
  const MatmulOperands& operands = group.front();
  if (operands.n_results == 0) return {};
  if (operands.layout == MatrixLayout::RowGroups) return plan_int8_matmul(group, scratch, card);
  if (is_float(operands)) return {float_launch(operands)};
  expects(scratch.tiles.n_in == operands.n_in, "tiles are as wide as the matrix");
  std::vector<KernelLaunch> launches;
  if (!scratch.rows_are_prepared) launches.push_back(plan_prepare_tiles(operands, scratch.tiles));
  const std::uint32_t columns = many_columns(group, card);
  launches.push_back(columns > 0 ? many_launch(group, scratch, columns)
                                 : few_launch(group, scratch, card));
  return launches;
}

std::uint64_t split_bytes(MatmulGroup group, const DeviceProperties& card) {
  if (group.front().layout == MatrixLayout::RowGroups) return int8_split_bytes(group, card);
  if (part_count(group, card) == 1) return 0;
  const MatmulOperands& first = group.front();
  const std::uint64_t columns = tiles_for(first, card) * kTileRows;
  const std::uint64_t rows = row_tiles(group, kFewWeightRows) * kFewWeightRows;
  return device::slice_count(first.n_in) * columns * rows * sizeof(float);
}

std::uint64_t max_split_bytes(const DeviceProperties& card) {
  // A narrower matrix may have more slices than a wider one. A launch in int8 is split if it has
  // fewer blocks, of as many rows and columns.
  static_assert(kInt8Chunks <= device::kMaxSlices);
  return std::uint64_t{device::kMaxSlices} * kFewRows * counter_count(card) * kFewWeightRows *
         sizeof(float);
}

std::uint32_t counter_count(const DeviceProperties& card) {
  return kBlocksPerSm * std::max(card.n_sms, 1u);  // a launch of more row tiles is not split
}

}  // namespace leasehold::cuda
