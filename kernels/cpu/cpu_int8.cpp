// Matmuls in int8 arithmetic: one launch rounds the rows, another multiplies groups with them.
#include <array>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/cpu/tiling.hpp"

namespace leasehold {
namespace {

/// Rows of the batch that a group is multiplied with while it is in registers.
constexpr std::uint32_t kRowsAtOnce = 8;
/// Memory supplies that much to one thread in about 12 µs.
constexpr std::uint64_t kTileWeightBytes = 256 * 1024;

/// Cuts a matmul into tiles of groups and at most kRowsAtOnce rows. Tiles of the same groups are
/// neighbours, so that memory supplies these once, then the cache does.
struct GroupTiles {
  std::uint32_t n_groups;
  std::uint32_t n_batch;
  std::uint32_t groups_per_tile;
  std::uint32_t batch_per_tile;

  static GroupTiles plan(const WeightMatrix& weight, std::uint32_t n_batch,
                         std::uint64_t tile_macs) {
    const std::uint32_t batch = std::min(n_batch, kRowsAtOnce);
    const std::uint64_t by_macs = tile_macs / (std::uint64_t{kGroupRows} * weight.n_in * batch);
    const std::uint64_t by_bytes = kTileWeightBytes / row_group_bytes(weight.type, weight.n_in);
    const std::uint64_t groups = std::max<std::uint64_t>(std::min(by_macs, by_bytes), 1);
    return {row_groups(weight.n_out), n_batch, static_cast<std::uint32_t>(groups), batch};
  }
  std::uint32_t batch_tiles() const { return tiles_for(n_batch, batch_per_tile); }
  std::uint32_t count() const { return tiles_for(n_groups, groups_per_tile) * batch_tiles(); }
  Span32 groups(std::uint32_t tile) const {
    return tile_span(tile / batch_tiles(), groups_per_tile, n_groups);
  }
  Span32 batch(std::uint32_t tile) const {
    return tile_span(tile % batch_tiles(), batch_per_tile, n_batch);
  }
};

}  // namespace

LaunchStatus CpuBackend::matmul_int8(const LaunchContext& context, const MatmulArgs& args) {
  const WeightMatrix& weight = args.weight;
  const std::uint32_t n_batch = selected_rows(context, args);
  if (n_batch == 0) return {context.gates->all()};
  used_rounded_ = std::max(used_rounded_, n_batch);
  const std::uint32_t per_tile = items_per_tile(weight.n_in * kMacsPerElement);
  const std::uint32_t block = group_format(weight.type).elements;
  const auto round_rows = [&](const LaunchPermit&, std::uint32_t, std::uint32_t tile) {
    const Span32 span = tile_span(tile, per_tile, n_batch);
    for (std::uint32_t i = span.begin; i < span.end; ++i)
      kernels_.round_row(selected_row(args, i), weight.n_in, block, rounded_.buffer(i));
  };
  const UnitLabel unit = label(context, args.site);
  const LaunchStatus rounded =
      launcher_.run(context, unit, tiles_for(n_batch, per_tile), round_rows);
  if (rounded.none_live()) return rounded;

  const GroupTiles tiles = GroupTiles::plan(weight, n_batch, kernels_.int8_tile_macs);
  const auto multiply = [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
    const Span32 batch = tiles.batch(tile);
    const std::uint32_t n_rows = batch.end - batch.begin;
    std::array<RoundedRow, kRowsAtOnce> x{};
    for (std::uint32_t i = 0; i < n_rows; ++i) x[i] = rounded_.row(batch.begin + i);
    const Span32 groups = tiles.groups(tile);
    for (std::uint32_t g = groups.begin; g < groups.end; ++g) {
      std::array<float, kRowsAtOnce * kGroupRows> dots;
      kernels_.dot_group_int8(weight.type, matrix_group(permit, weight, g), weight.n_in, x.data(),
                              n_rows, dots.data());
      for (std::uint32_t i = 0; i < n_rows; ++i)
        store_group(args, permit, g, batch.begin + i, dots.data() + i * kGroupRows);
    }
  };
  const LaunchStatus multiplied = launcher_.run(context, unit, tiles.count(), multiply);
  return {rounded.live & multiplied.live};
}

}  // namespace leasehold
