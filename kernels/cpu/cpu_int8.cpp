// Matmuls in int8 arithmetic: one launch rounds the rows, another multiplies groups with them.
#include <algorithm>
#include <array>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/cpu/tiling.hpp"

namespace leasehold {
namespace {

/// Most rows of the batch in a tile.
constexpr std::uint32_t kRowsAtOnce = 16;
/// Memory supplies that much to one thread in about 12 µs.
constexpr std::uint64_t kTileWeightBytes = 256 * 1024;

/// Cuts a matmul into tiles of groups and rows. Tiles of the same groups are neighbours, so that
/// memory supplies these once, then the cache does.
struct GroupTiles {
  std::uint32_t n_groups;
  std::uint32_t n_batch;
  std::uint32_t groups_per_tile;
  std::uint32_t batch_per_tile;

  /// Tiles of `n_groups` groups of the matrix.
  static GroupTiles plan(const WeightMatrix& weight, std::uint32_t n_groups, std::uint32_t n_batch,
                         std::uint64_t tile_macs) {
    const std::uint64_t row_macs = std::uint64_t{kGroupRows} * weight.n_in;
    const bool fits = row_macs * kRowsAtOnce <= tile_macs;
    const std::uint32_t batch = std::min(n_batch, fits ? kRowsAtOnce : kRowsAtOnce / 2);
    const std::uint64_t by_macs = tile_macs / (row_macs * batch);
    const std::uint64_t by_bytes = kTileWeightBytes / row_group_bytes(weight.type, weight.n_in);
    const std::uint64_t groups = std::max<std::uint64_t>(std::min(by_macs, by_bytes), 1);
    return {n_groups, n_batch, static_cast<std::uint32_t>(groups), batch};
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

/// Rounds rows 0 … n_rows - 1 of a matmul's input.
template <class RowOf>
LaunchStatus CpuBackend::round_rows(const LaunchContext& context, LaunchSite site,
                                    const WeightMatrix& weight, std::uint32_t n_rows,
                                    RowOf&& row_of) {
  used_rounded_ = std::max(used_rounded_, n_rows);
  const std::uint32_t per_tile = items_per_tile(weight.n_in * kMacsPerElement);
  const std::uint32_t block = group_format(weight.type).elements;
  return launcher_.run(context, label(context, site), tiles_for(n_rows, per_tile),
                       [&](const LaunchPermit&, std::uint32_t, std::uint32_t tile) {
                         const Span32 span = tile_span(tile, per_tile, n_rows);
                         for (std::uint32_t i = span.begin; i < span.end; ++i)
                           kernels_.round_row(row_of(i), weight.n_in, block, rounded_.buffer(i));
                       });
}

LaunchStatus CpuBackend::matmul_int8(const LaunchContext& context, const MatmulArgs& args) {
  const WeightMatrix& weight = args.weight;
  const std::uint32_t n_batch = selected_rows(context, args);
  if (n_batch == 0) return {context.gates->all()};
  const LaunchStatus rounded = round_rows(context, args.site, weight, n_batch,
                                          [&](std::uint32_t i) { return selected_row(args, i); });
  if (rounded.none_live()) return rounded;

  const GroupTiles tiles =
      GroupTiles::plan(weight, row_groups(weight.n_out), n_batch, kernels_.int8_tile_macs);
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
  const LaunchStatus multiplied =
      launcher_.run(context, label(context, args.site), tiles.count(), multiply);
  return {rounded.live & multiplied.live};
}

/// As with floats, one matmul per expert over its own items.
LaunchStatus CpuBackend::expert_matmul_int8(const LaunchContext& context,
                                            const ExpertMatmulArgs& args,
                                            const ExpertItems& batch) {
  const WeightMatrix& weight = args.weight;
  const LaunchStatus rounded =
      round_rows(context, args.site, weight, expert_inputs(args),
                 [&](std::uint32_t i) { return args.x + std::size_t{i} * weight.n_in; });
  if (rounded.none_live()) return rounded;

  const std::uint32_t n_groups = args.n_out() / kGroupRows;
  const auto tiles_of = [&](std::uint32_t expert) {
    return GroupTiles::plan(weight, n_groups, batch.first[expert + 1] - batch.first[expert],
                            kernels_.int8_tile_macs);
  };
  first_tile_[0] = 0;
  for (std::uint32_t e = 0; e < args.n_experts; ++e) {
    const bool is_used = batch.first[e + 1] > batch.first[e];
    first_tile_[e + 1] = first_tile_[e] + (is_used ? tiles_of(e).count() : 0);
  }
  const auto multiply = [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
    const std::uint32_t expert = expert_of_tile(args.n_experts, tile);
    const GroupTiles tiles = tiles_of(expert);
    const Span32 span = tiles.batch(tile - first_tile_[expert]);
    const std::uint32_t n_rows = span.end - span.begin;
    const std::uint32_t* items = batch.items.data() + batch.first[expert] + span.begin;
    std::array<RoundedRow, kRowsAtOnce> x{};
    for (std::uint32_t i = 0; i < n_rows; ++i) x[i] = rounded_.row(items[i] / args.items_per_x);
    const Span32 groups = tiles.groups(tile - first_tile_[expert]);
    for (std::uint32_t g = groups.begin; g < groups.end; ++g) {
      std::array<float, kRowsAtOnce * kGroupRows> dots;
      kernels_.dot_group_int8(weight.type, matrix_group(permit, weight, expert * n_groups + g),
                              weight.n_in, x.data(), n_rows, dots.data());
      for (std::uint32_t i = 0; i < n_rows; ++i)
        std::copy_n(dots.data() + i * kGroupRows, kGroupRows,
                    args.out + (std::size_t{items[i]} * n_groups + g) * kGroupRows);
    }
  };
  const LaunchStatus multiplied =
      launcher_.run(context, label(context, args.site), first_tile_[args.n_experts], multiply);
  return {rounded.live & multiplied.live};
}

}  // namespace leasehold
