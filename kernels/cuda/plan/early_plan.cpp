#include "kernels/cuda/plan/early_plan.hpp"

#include <algorithm>

#include "kernels/cuda/plan/matmul_group.hpp"
#include "kernels/cuda/plan/plan_context.hpp"
#include "kernels/quant/row_group.hpp"

namespace leasehold::cuda {
namespace {

/// A ring of one stage cannot copy while its unit is multiplied.
constexpr std::uint32_t kMinStages = 2;

/// Blocks of one launch on an SM. With one or two columns, 64 registers per thread suffice, and 16
/// warps hide more of the latency than 8.
std::uint32_t most_blocks_per_sm(std::uint32_t columns) {
  return columns <= 2 ? 2 : 1;
}

/// The smallest number of columns that holds the results; 0: there are too many.
std::uint32_t columns_for(std::uint32_t n_results) {
  for (const std::uint32_t columns : device::kEarlyColumns)
    if (columns >= n_results) return columns;
  return 0;
}

constexpr std::uint32_t aligned_128(std::uint32_t bytes) {
  return (bytes + 127) / 128 * 128;
}

/// The shape for this number of blocks per SM; null: it does not fit.
std::optional<EarlyShape> shape_of(MatmulGroup group, std::uint32_t columns, bool has_rows,
                                   std::uint32_t blocks_per_sm, const DeviceProperties& card) {
  const MatmulOperands& first = group.front();
  const GroupFormat format = group_format(first.type);
  const std::uint32_t limit =
      std::min(device::kEarlySharedBytesPerSm, card.max_shared_bytes) / blocks_per_sm;
  const device::EarlyRows rows =
      has_rows ? device::early_rows(format, columns, first.n_in) : device::EarlyRows{};
  const auto floats = [](std::uint32_t n) {
    return device::aligned_16(n * static_cast<std::uint32_t>(sizeof(float)));
  };
  device::EarlyShared shared{};
  shared.scales_at = device::kEarlyPartsAt + floats(2 * kInt8Chunks * columns * kGroupRows);
  shared.rows_at = shared.scales_at + floats(first.n_in / format.elements * columns);
  shared.rings_at = aligned_128(shared.rows_at + rows.size_bytes);
  if (shared.rings_at >= limit) return std::nullopt;
  const std::uint32_t stage_bytes = device::early_stage_bytes(
      device::int8_chunk_ring(first.type, columns).unit, columns, has_rows);
  shared.stages =
      std::min(device::kMaxEarlyStages, (limit - shared.rings_at) / (kInt8Chunks * stage_bytes));
  if (shared.stages < kMinStages) return std::nullopt;
  return EarlyShape{
      .columns = columns,
      .n_blocks = std::min(blocks_per_sm * std::max(card.n_sms, 1u), row_tiles(group, kGroupRows)),
      .shared_bytes = shared.size_bytes(stage_bytes),
      .shared = shared,
      .rows = rows};
}

}  // namespace

std::optional<EarlyShape> early_shape(MatmulGroup group, bool has_norm,
                                      const DeviceProperties& card) {
  const MatmulOperands& first = group.front();
  const std::uint32_t columns = columns_for(first.n_results);
  if (!card.starts_early || first.layout != MatrixLayout::RowGroups || is_experts(first) ||
      columns == 0)
    return std::nullopt;
  for (std::uint32_t blocks = most_blocks_per_sm(columns); blocks > 0; --blocks)
    if (const auto shape = shape_of(group, columns, true, blocks, card)) return shape;
  if (has_norm || device::early_keeps_rows(columns)) return std::nullopt;
  return shape_of(group, columns, false, 1, card);
}

}  // namespace leasehold::cuda
