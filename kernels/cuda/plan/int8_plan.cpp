#include "kernels/cuda/plan/int8_plan.hpp"

#include "common/expects.hpp"
#include "kernels/cuda/device/int8/int8_units.hpp"
#include "kernels/cuda/device/int8/matmul_int8_params.hpp"
#include "kernels/cuda/device/round_rows_params.hpp"
#include "kernels/cuda/plan/matmul_group.hpp"
#include "kernels/cuda/plan/matmul_kernels.hpp"
#include "kernels/cuda/plan/plan_context.hpp"
#include "kernels/quant/row_group.hpp"

namespace leasehold::cuda {
namespace {

constexpr std::uint32_t kRoundingThreads = 256;

constexpr std::uint32_t kInt8Threads = 256;
constexpr std::uint32_t kTileBlocksPerSm = 2;  ///< Blocks of Int8Tile that are resident on an SM.

/// The smallest number of columns that holds the results, limited by the card's shared memory. One
/// or two columns use dp4a, more use mma. With three rows a tile of 8 takes fewer instructions than
/// dp4a.
std::uint32_t columns_for(const MatmulOperands& operands, const DeviceProperties& card) {
  constexpr std::uint32_t kStaticBytes = 2048;  // the kernel's list of columns
  const std::uint32_t together = results_together(operands);
  std::uint32_t best = 1;
  for (const std::uint32_t columns : device::kInt8Columns) {
    const std::uint32_t shared_bytes = device::int8_shared_bytes(operands.type, columns);
    if (shared_bytes + kStaticBytes > card.max_shared_bytes)
      continue;  // not the end: 32 columns may take less than eight
    best = columns;
    if (columns >= together) break;
  }
  return best;
}

/// The rows of a block: those of one group or of four.
std::uint32_t rows_per_tile(std::uint32_t columns) {
  return kGroupRows * (columns < device::kInt8TileColumns ? 1 : device::kInt8TileGroups);
}

/// The grid of the launch. The fewest parts of the chunks that give every SM its blocks share a
/// row.
GridSize grid_of(MatmulGroup group, std::uint32_t columns, const DeviceProperties& card) {
  const MatmulOperands& first = group.front();
  GridSize grid = {.x = row_tiles(group, rows_per_tile(columns)),
                   .y = result_tiles(first, columns)};
  if (columns < device::kInt8TileColumns || is_experts(first)) return grid;
  while (grid.z < kInt8Chunks && grid.x * grid.y * grid.z < kTileBlocksPerSm * card.n_sms)
    grid.z *= 2;
  return grid;
}

device::Int8MatmulParams int8_params_of(MatmulGroup group, const MatmulScratch& scratch,
                                        std::uint32_t columns) {
  const MatmulOperands& first = group.front();
  device::Int8MatmulParams params = {.gate = first.gate,
                                     .segments = {},
                                     .group_bytes = row_group_bytes(first.type, first.n_in),
                                     .x = scratch.rounded,
                                     .select = scratch.rows_are_prepared ? first.select : nullptr,
                                     .experts = first.experts,
                                     .partials = scratch.partials,
                                     .counters = scratch.counters,
                                     .n_segments = static_cast<std::uint32_t>(group.size()),
                                     .accumulate = first.accumulate ? 1u : 0u,
                                     .count = first.count,
                                     .gated = scratch.gated};
  set_segments(params.segments, group, rows_per_tile(columns));
  return params;
}

KernelLaunch multiply_launch(MatmulGroup group, const MatmulScratch& scratch,
                             const DeviceProperties& card) {
  const MatmulOperands& first = group.front();
  const std::uint32_t columns = columns_for(first, card);
  GridSize grid = grid_of(group, columns, card);
  if (scratch.partials == nullptr) grid.z = 1;
  return {.kernel = int8_kernel(first.type, columns),
          .grid = grid,
          .block_threads = kInt8Threads,
          .shared_bytes = device::int8_shared_bytes(first.type, columns),
          .params = KernelParams(int8_params_of(group, scratch, columns))};
}

}  // namespace

std::vector<KernelLaunch> plan_int8_matmul(MatmulGroup group, const MatmulScratch& scratch,
                                           const DeviceProperties& card) {
  const MatmulOperands& first = group.front();
  expects(scratch.rounded.n_in == first.n_in &&
              scratch.rounded.block == block_shape(first.type).elements,
          "x is rounded in the blocks of the matrix");
  std::vector<KernelLaunch> launches;
  if (!scratch.rows_are_prepared) launches.push_back(plan_round_rows(first, scratch.rounded));
  launches.push_back(multiply_launch(group, scratch, card));
  return launches;
}

bool gates_products(MatmulGroup gate_and_up, std::uint32_t next_block,
                    const DeviceProperties& card) {
  const MatmulOperands& gate = gate_and_up.front();
  if (gate_and_up.size() != 2 || joined_matmuls(gate_and_up) != 2 ||
      gate.layout != MatrixLayout::RowGroups || gate.accumulate || gate.select != nullptr)
    return false;
  static_assert(device::kInt8TileColumns > device::kMaxGatedRows);
  const std::uint32_t columns = columns_for(gate, card);
  return columns <= device::kMaxGatedRows && result_tiles(gate, columns) == 1 &&
         gate.n_out == gate_and_up.back().n_out && gate.n_out % next_block == 0;
}

std::uint64_t int8_split_bytes(MatmulGroup group, const DeviceProperties& card) {
  const std::uint32_t columns = columns_for(group.front(), card);
  const GridSize grid = grid_of(group, columns, card);
  if (grid.z == 1) return 0;
  return std::uint64_t{kInt8Chunks} * grid.x * rows_per_tile(columns) * grid.y * columns *
         sizeof(float);
}

KernelLaunch plan_round_rows(const MatmulOperands& operands, const device::Int8Rows& rounded) {
  const std::uint32_t items_per_x = is_experts(operands) ? operands.experts.items_per_x : 1;
  const device::RoundRowsParams params = {
      .gate = operands.gate,
      .x = operands.x,
      .select = operands.select,
      .rounded = rounded,
      .count = {.is_logit_rows = operands.count.is_logit_rows,
                .per_row = operands.count.per_row / items_per_x}};
  const std::uint32_t n_blocks = rounded.n_in / rounded.block;
  return {.kernel = "lh_round_rows",
          .grid = {.x = blocks_for(operands.n_results, items_per_x),
                   .y = blocks_for(n_blocks, kRoundingThreads / kWarpThreads)},
          .block_threads = kRoundingThreads,
          .params = KernelParams(params)};
}

}  // namespace leasehold::cuda
