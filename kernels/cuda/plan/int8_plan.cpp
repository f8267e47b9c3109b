#include "kernels/cuda/plan/int8_plan.hpp"

#include "common/expects.hpp"
#include "kernels/cuda/device/int8/int8_units.hpp"
#include "kernels/cuda/device/int8/matmul_int8_params.hpp"
#include "kernels/cuda/device/round_rows_params.hpp"
#include "kernels/cuda/plan/early_plan.hpp"
#include "kernels/cuda/plan/matmul_group.hpp"
#include "kernels/cuda/plan/matmul_kernels.hpp"
#include "kernels/cuda/plan/plan_context.hpp"
#include "kernels/quant/row_group.hpp"

namespace leasehold::cuda {
namespace {

constexpr std::uint32_t kRoundingThreads = 256;

constexpr std::uint32_t kInt8Threads = 256;

/// A kernel, and what its blocks compute.
struct Int8Kernel {
  const char* name;
  std::uint32_t columns;
  std::uint32_t rows;
  std::uint32_t shared_bytes;
  /// Quarters of a block per SM below which blocks share the chunks of a row; 0: they never do.
  std::uint32_t quarters_per_sm;
};

/// Up to eight columns, a block computes all chunks of one group. Tiles have two resident blocks
/// per SM.
Int8Kernel plain_kernel(TensorType type, std::uint32_t columns) {
  const bool is_tile = columns >= device::kInt8TileColumns;
  return {.name = int8_kernel(type, columns),
          .columns = columns,
          .rows = kGroupRows * (is_tile ? device::kInt8TileGroups : 1),
          .shared_bytes = device::int8_shared_bytes(type, columns),
          .quarters_per_sm = is_tile ? 8u : 0u};
}

/// With wgmma the registers of an SM hold one block of 128 columns, two of fewer; its shared memory
/// holds only one of 64 columns of types with more than 4.5 bits per weight. A launch that gives
/// three quarters of the places in registers a block is not split: its parts of results would pass
/// through memory.
Int8Kernel many_kernel(TensorType type, std::uint32_t columns) {
  return {.name = int8_many_kernel(type, columns),
          .columns = columns,
          .rows = kGroupRows * device::kInt8ManyGroups,
          .shared_bytes = device::int8_many_shared_bytes(type, columns),
          .quarters_per_sm = columns > 64 ? 3u : 6u};
}

bool fits(const Int8Kernel& kernel, const DeviceProperties& card) {
  constexpr std::uint32_t kStaticBytes = 2048;  // the kernel's list of columns
  return kernel.shared_bytes + kStaticBytes <= card.max_shared_bytes;
}

/// The kernel with the smallest number of columns that holds the results, limited by the card's
/// shared memory: 32 columns may take less than eight.
template <std::size_t kChoices>
Int8Kernel smallest_kernel(const std::uint32_t (&choices)[kChoices],
                           Int8Kernel (*make)(TensorType, std::uint32_t),
                           const MatmulOperands& operands, const DeviceProperties& card) {
  Int8Kernel best = make(operands.type, choices[0]);
  for (const std::uint32_t columns : choices) {
    const Int8Kernel kernel = make(operands.type, columns);
    if (!fits(kernel, card)) continue;
    best = kernel;
    if (columns >= results_together(operands)) break;
  }
  return best;
}

/// The grid of the launch. The fewest parts of the chunks that give every SM its blocks share a
/// row.
GridSize grid_of(MatmulGroup group, const Int8Kernel& kernel, const DeviceProperties& card) {
  const MatmulOperands& first = group.front();
  GridSize grid = {.x = row_tiles(group, kernel.rows), .y = result_tiles(first, kernel.columns)};
  if (is_experts(first)) return grid;
  while (grid.z < kInt8Chunks && 4 * grid.x * grid.y * grid.z < kernel.quarters_per_sm * card.n_sms)
    grid.z *= 2;
  return grid;
}

/// One or two columns use dp4a, more use mma. With three rows a tile of 8 takes fewer instructions
/// than dp4a. Above eight, a card with wgmma uses it. If such blocks leave half of the SMs idle,
/// the smaller blocks of tiles are over sooner.
Int8Kernel kernel_for(MatmulGroup group, const DeviceProperties& card) {
  const MatmulOperands& first = group.front();
  const Int8Kernel plain = smallest_kernel(device::kInt8Columns, plain_kernel, first, card);
  if (!card.has_wgmma || !device::has_int8_many(first.type) || plain.quarters_per_sm == 0)
    return plain;
  const Int8Kernel many = smallest_kernel(device::kInt8ManyColumns, many_kernel, first, card);
  const GridSize grid = grid_of(group, many, card);
  return fits(many, card) && 2 * grid.x * grid.y * grid.z > card.n_sms ? many : plain;
}

device::Int8MatmulParams int8_params_of(MatmulGroup group, const MatmulScratch& scratch,
                                        std::uint32_t rows_per_tile) {
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
  set_segments(params.segments, group, rows_per_tile);
  return params;
}

KernelLaunch early_launch(MatmulGroup group, const MatmulScratch& scratch,
                          const EarlyShape& shape) {
  return {.kernel = early_kernel(group.front().type, shape.columns),
          .grid = {.x = shape.n_blocks},
          .block_threads = kInt8Threads,
          .shared_bytes = shape.shared_bytes,
          .params = KernelParams(
              device::EarlyMatmulParams{.matmul = int8_params_of(group, scratch, kGroupRows),
                                        .norm = scratch.norm,
                                        .shared = shape.shared,
                                        .rows = shape.rows,
                                        .n_tiles = row_tiles(group, kGroupRows)})};
}

KernelLaunch multiply_launch(MatmulGroup group, const MatmulScratch& scratch,
                             const DeviceProperties& card) {
  const bool has_norm = scratch.norm.x != nullptr;
  if (const auto early = early_shape(group, has_norm, card))
    return early_launch(group, scratch, *early);
  expects(!has_norm, "only a launch that starts early computes the norm of its rows");
  const Int8Kernel kernel = kernel_for(group, card);
  GridSize grid = grid_of(group, kernel, card);
  if (scratch.partials == nullptr) grid.z = 1;
  return {.kernel = kernel.name,
          .grid = grid,
          .block_threads = kInt8Threads,
          .shared_bytes = kernel.shared_bytes,
          .params = KernelParams(int8_params_of(group, scratch, kernel.rows))};
}

}  // namespace

std::vector<KernelLaunch> plan_int8_matmul(MatmulGroup group, const MatmulScratch& scratch,
                                           const DeviceProperties& card) {
  const MatmulOperands& first = group.front();
  expects(scratch.rounded.n_in == first.n_in &&
              scratch.rounded.block == block_shape(first.type).elements,
          "x is rounded in the blocks of the matrix");
  std::vector<KernelLaunch> launches;
  if (!scratch.rows_are_prepared && scratch.norm.x == nullptr)
    launches.push_back(plan_round_rows(first, scratch.rounded));
  launches.push_back(multiply_launch(group, scratch, card));
  return launches;
}

bool norms_rows(MatmulGroup group, const DeviceProperties& card) {
  return group.front().select == nullptr && early_shape(group, true, card).has_value();
}

bool gates_products(MatmulGroup gate_and_up, std::uint32_t next_block,
                    const DeviceProperties& card) {
  const MatmulOperands& gate = gate_and_up.front();
  if (gate_and_up.size() != 2 || joined_matmuls(gate_and_up) != 2 ||
      gate.layout != MatrixLayout::RowGroups || gate.accumulate || gate.select != nullptr)
    return false;
  static_assert(device::kInt8TileColumns > device::kMaxGatedRows);
  const std::uint32_t columns = kernel_for(gate_and_up, card).columns;
  return columns <= device::kMaxGatedRows && result_tiles(gate, columns) == 1 &&
         gate.n_out == gate_and_up.back().n_out && gate.n_out % next_block == 0;
}

std::uint64_t int8_split_bytes(MatmulGroup group, const DeviceProperties& card) {
  const Int8Kernel kernel = kernel_for(group, card);
  const GridSize grid = grid_of(group, kernel, card);
  if (grid.z == 1) return 0;
  return std::uint64_t{kInt8Chunks} * grid.x * kernel.rows * grid.y * kernel.columns *
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
