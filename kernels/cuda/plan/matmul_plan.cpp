#include "kernels/cuda/plan/matmul_plan.hpp"

#include <algorithm>

#include "common/expects.hpp"
#include "kernels/cuda/device/weight_chunks.hpp"
#include "kernels/cuda/plan/matmul_kernels.hpp"
#include "kernels/cuda/plan/plan_context.hpp"

namespace leasehold::cuda {
namespace {

using device::kTileRows;

constexpr std::uint32_t kFewRows = 64;  ///< Results up to which the plan uses the few-rows kernels.
constexpr std::uint32_t kFewWeightRows = 64;  ///< Per block.
constexpr std::uint32_t kBlocksPerSm = 4;  ///< Of few rows, enough to hide the latency of memory.
constexpr std::uint32_t kManyWeightRows = 128;
constexpr std::uint32_t kFloatOutputs = 4;
constexpr std::uint32_t kTileChoices[] = {1, 2, 4, 8};

/// A kernel has some static shared memory in addition to the dynamic part of its launch.
bool fits(std::uint32_t dynamic_bytes, const DeviceProperties& card) {
  constexpr std::uint32_t kStaticBytes = 128;
  return dynamic_bytes + kStaticBytes <= card.max_shared_bytes;
}

bool is_experts(const MatmulOperands& operands) {
  return operands.experts.chosen != nullptr;
}

/// The approximate number of results per matrix.
std::uint32_t results_together(const MatmulOperands& operands) {
  return is_experts(operands) ? blocks_for(operands.n_results, operands.n_experts)
                              : operands.n_results;
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
std::uint32_t many_columns(const MatmulOperands& operands, const DeviceProperties& card) {
  const std::uint32_t together = results_together(operands);
  if (!card.has_wgmma || together <= kFewRows) return 0;
  const std::uint32_t wide_blocks =
      blocks_for(operands.n_out, kManyWeightRows) * blocks_for(together, 128);
  const std::uint32_t columns = wide_blocks < card.n_sms ? 64 : 128;
  const device::RingShape ring = device::many_rows_ring(columns);
  const std::uint32_t bytes = device::ring_bytes(device::weight_chunk(operands.type), ring);
  return fits(bytes, card) ? columns : 0;
}

/// The number of parts into which slices are divided so that about kBlocksPerSm blocks per SM are
/// resident; 1: the launch is not split.
std::uint32_t part_count(const MatmulOperands& operands, const DeviceProperties& card) {
  if (operands.type == TensorType::F32 || is_experts(operands) ||
      operands.n_results > tiles_for(operands, card) * kTileRows)
    return 1;
  const std::uint32_t row_tiles = blocks_for(operands.n_out, kFewWeightRows);
  const std::uint32_t slices = device::slice_count(operands.n_in);
  const std::uint32_t wanted = std::min(slices, blocks_for(kBlocksPerSm * card.n_sms, row_tiles));
  return blocks_for(slices, device::slices_per_part(operands.n_in, wanted));
}

/// The parameters of the matmul itself. Prepared tiles already have the selected rows.
device::MatmulParams params_of(const MatmulOperands& operands, const MatmulScratch& scratch) {
  return {.gate = operands.gate,
          .weights = operands.weights,
          .row_bytes = row_size_bytes(operands.type, operands.n_in),
          .x = scratch.tiles,
          .select = scratch.tiles_are_ready ? operands.select : nullptr,
          .experts = operands.experts,
          .out = operands.out,
          .bias = operands.bias,
          .partials = nullptr,
          .counters = nullptr,
          .n_out = operands.n_out,
          .accumulate = operands.accumulate ? 1u : 0u,
          .count = operands.count};
}

std::uint32_t grid_y(const MatmulOperands& operands, std::uint32_t columns) {
  return is_experts(operands) ? operands.n_experts : blocks_for(operands.n_results, columns);
}

KernelLaunch few_launch(const MatmulOperands& operands, const MatmulScratch& scratch,
                        const DeviceProperties& card) {
  const std::uint32_t tiles = tiles_for(operands, card);
  device::MatmulParams params = params_of(operands, scratch);
  GridSize grid = {.x = blocks_for(operands.n_out, kFewWeightRows),
                   .y = grid_y(operands, tiles * kTileRows)};
  const std::uint32_t parts = scratch.partials == nullptr ? 1 : part_count(operands, card);
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

KernelLaunch many_launch(const MatmulOperands& operands, const MatmulScratch& scratch,
                         std::uint32_t columns) {
  return {
      .kernel = many_rows_kernel(operands.type, columns),
      .grid = {.x = blocks_for(operands.n_out, kManyWeightRows), .y = grid_y(operands, columns)},
      .block_threads = 256,
      .shared_bytes =
          device::ring_bytes(device::weight_chunk(operands.type), device::many_rows_ring(columns)),
      .params = KernelParams(params_of(operands, scratch))};
}

KernelLaunch float_launch(const MatmulOperands& operands) {
  const std::uint32_t columns = results_together(operands) == 1 ? 1 : kTileRows;
  const device::FloatMatmulParams params = {
      .gate = operands.gate,
      .weights = reinterpret_cast<const float*>(operands.weights),
      .x = operands.x,
      .select = operands.select,
      .experts = operands.experts,
      .out = operands.out,
      .bias = operands.bias,
      .n_out = operands.n_out,
      .n_in = operands.n_in,
      .accumulate = operands.accumulate ? 1u : 0u,
      .count = operands.count};
  return {.kernel = columns == 1 ? "lh_matmul_f32_1" : "lh_matmul_f32_8",
          .grid = {.x = blocks_for(operands.n_out, kFloatOutputs), .y = grid_y(operands, columns)},
          .block_threads = 128,
          .params = KernelParams(params)};
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

std::vector<KernelLaunch> plan_matmul(const MatmulOperands& operands, const MatmulScratch& scratch,
                                      const DeviceProperties& card) {
  if (operands.n_results == 0) return {};
  if (operands.type == TensorType::F32) return {float_launch(operands)};
  expects(scratch.tiles.n_in == operands.n_in, "tiles are as wide as the matrix");
  std::vector<KernelLaunch> launches;
  if (!scratch.tiles_are_ready) launches.push_back(plan_prepare_tiles(operands, scratch.tiles));
  const std::uint32_t columns = many_columns(operands, card);
  launches.push_back(columns > 0 ? many_launch(operands, scratch, columns)
                                 : few_launch(operands, scratch, card));
  return launches;
}

std::uint64_t split_bytes(const MatmulOperands& operands, const DeviceProperties& card) {
  if (part_count(operands, card) == 1) return 0;
  return std::uint64_t{device::slice_count(operands.n_in)} * tiles_for(operands, card) * kTileRows *
         operands.n_out * sizeof(float);
}

std::uint64_t max_split_bytes(const DeviceProperties& card) {
  // A narrower matrix may have more slices than a wider one.
  return std::uint64_t{device::kMaxSlices} * kFewRows * counter_count(card) * kFewWeightRows *
         sizeof(float);
}

std::uint32_t counter_count(const DeviceProperties& card) {
  return kBlocksPerSm * std::max(card.n_sms, 1u);  // a launch of more row tiles is not split
}

}  // namespace leasehold::cuda
