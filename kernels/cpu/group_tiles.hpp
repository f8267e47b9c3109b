/// The tiles of a matmul in int8 arithmetic.
#pragma once

#include <algorithm>

#include "kernels/cpu/tiling.hpp"
#include "kernels/op_args.hpp"

namespace leasehold {

/// The fewest batch rows for which two groups are multiplied together; with fewer, memory is faster
/// one group at a time.
constexpr std::uint32_t least_rows_for_two_groups(TensorType type) {
  const GroupFormat format = group_format(type);
  return format.has_sub_blocks() || format.low_bits == 8 ? 9 : 4;
}

/// Neighbouring groups. Sets of `at_once` groups are multiplied together; the last set may have
/// fewer.
struct GroupSpan {
  std::uint32_t begin;
  std::uint32_t end;
  std::uint32_t at_once;

  /// Calls `multiply(set)` for each set.
  template <class Multiply>
  void each_set(Multiply&& multiply) const {
    for (std::uint32_t first = begin; first < end; first += at_once)
      multiply(Span32{first, std::min(first + at_once, end)});
  }
};

/// Cuts a matmul into tiles of groups and batch rows. If there are few tiles, each thread gets
/// equally many. Tiles of the same groups are neighbours, so memory supplies the groups once and
/// the cache afterwards. All groups of a set are in one tile.
struct GroupTiles {
  std::uint32_t n_groups;
  std::uint32_t n_batch;
  std::uint32_t at_once;
  std::uint32_t group_tiles;
  std::uint32_t batch_per_tile;

  struct Costs {
    Int8Units units;
    std::uint32_t matrices;  ///< Matrices of the same shape in each unit.
    std::uint32_t threads;
  };
  /// Tiles of `n_groups` groups of each matrix.
  static GroupTiles plan(const WeightMatrix& weight, std::uint32_t n_groups, std::uint32_t n_batch,
                         Costs costs) {
    const std::uint64_t tile_macs = costs.units.tile_macs / costs.matrices;
    const std::uint64_t tile_bytes = kTileWeightBytes / costs.matrices;
    const std::uint64_t group_bytes = row_group_bytes(weight.type, weight.n_in);
    const std::uint64_t set_macs =
        std::uint64_t{kGroupRows} * costs.units.groups_at_once * weight.n_in;
    const bool pairs_groups = n_batch >= least_rows_for_two_groups(weight.type) &&
                              group_bytes * costs.units.groups_at_once <= tile_bytes &&
                              set_macs * costs.units.min_rows <= tile_macs;
    const std::uint32_t at_once = pairs_groups ? costs.units.groups_at_once : 1;
    const std::uint64_t row_macs = std::uint64_t{kGroupRows} * at_once * weight.n_in;
    std::uint32_t batch = kInt8TileRows;
    if (row_macs * batch > tile_macs) batch /= 2;
    if (row_macs * batch > tile_macs * 3 / 2) batch /= 2;
    batch = std::min(std::max(batch, costs.units.min_rows), n_batch);
    const std::uint64_t most =
        std::min(tile_macs / (row_macs * batch), tile_bytes / (group_bytes * at_once));
    const std::uint32_t n_sets = tiles_for(n_groups, at_once);
    const std::uint32_t least =
        tiles_for(n_sets, static_cast<std::uint32_t>(std::max<std::uint64_t>(most, 1)));
    const std::uint32_t even = (least + costs.threads - 1) / costs.threads * costs.threads;
    const bool has_few_tiles = least * tiles_for(n_batch, batch) < 8 * costs.threads;
    return {n_groups, n_batch, at_once, has_few_tiles ? std::min(even, n_sets) : least, batch};
  }
  std::uint32_t batch_tiles() const { return tiles_for(n_batch, batch_per_tile); }
  std::uint32_t count() const { return group_tiles * batch_tiles(); }
  /// The groups of a tile. Tiles have nearly the same number of sets.
  GroupSpan groups(std::uint32_t tile) const {
    const std::uint64_t part = tile / batch_tiles();
    const std::uint64_t n_sets = tiles_for(n_groups, at_once);
    const std::uint64_t end = (part + 1) * n_sets / group_tiles * at_once;
    return {static_cast<std::uint32_t>(part * n_sets / group_tiles * at_once),
            static_cast<std::uint32_t>(std::min<std::uint64_t>(end, n_groups)), at_once};
  }
  Span32 batch(std::uint32_t tile) const {
    return tile_span(tile % batch_tiles(), batch_per_tile, n_batch);
  }
};

}  // namespace leasehold
