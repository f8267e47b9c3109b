/// The size of a unit: small enough that a revocation waits at most about 15 µs for it.
///
/// Costs are counted in multiply-adds ("MACs"). kTileMacs is the tile of row operators and of plain
/// C++, which exceeds 15 µs without AVX2. RowKernels has the tile sizes for the dots of each SIMD
/// path. Tiling never changes the bits of a result.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/row_kernels.hpp"
#include "kernels/cpu/tile_passes.hpp"

namespace leasehold {

/// 12 µs of a thread at 8e9 MAC/s, which leaves time for dequantising and for a slower core.
inline constexpr std::uint64_t kTileMacs = 96'000;

/// Costs per element other than plain dots, in MACs.
inline constexpr std::uint64_t kMacsPerElement = 4;  ///< norm, rope, f16 stores, copies of rows
inline constexpr std::uint64_t kMacsPerExp = 16;     ///< silu
/// Bytes of weights that memory supplies to one thread in about 12 µs.
inline constexpr std::uint64_t kTileWeightBytes = 256 * 1024;

/// The number of items of `macs_each` that make a tile; at least one.
constexpr std::uint32_t items_per_tile(std::uint64_t macs_each) {
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(kTileMacs / std::max<std::uint64_t>(macs_each, 1), 1, 1u << 30));
}

constexpr std::uint32_t tiles_for(std::uint64_t items, std::uint32_t per_tile) {
  return static_cast<std::uint32_t>((items + per_tile - 1) / per_tile);
}

/// A range of items: [begin, end).
struct Span32 {
  std::uint32_t begin;
  std::uint32_t end;
};
constexpr Span32 tile_span(std::uint32_t tile, std::uint32_t per_tile, std::uint32_t items) {
  const std::uint64_t begin = std::uint64_t{tile} * per_tile;
  return {static_cast<std::uint32_t>(begin),
          static_cast<std::uint32_t>(std::min<std::uint64_t>(begin + per_tile, items))};
}

/// Bytes of matrix rows that stay in the L1 cache while inputs are read.
inline constexpr std::uint64_t kCachedRowBytes = 24 * 1024;
/// Bytes of inputs that stay in a core's L2 cache while all matrix rows are read.
inline constexpr std::uint64_t kCachedInputBytes = 512 * 1024;

/// Cuts a matmul in f32 arithmetic into tiles of matrix rows. Batch rows are cut too if they exceed
/// the cache, or if a few matrix rows times all batch rows exceed a tile. The matrix is read once
/// for each group of batch rows that fits the cache. Tiles with the same outputs and batch rows of
/// the same group are neighbours.
struct MatmulTiles {
  std::uint32_t n_out;
  std::uint32_t n_batch;
  std::uint32_t outputs_at_once;  ///< The most matrix rows of a tile that are multiplied at once.
  std::uint32_t outputs_per_tile;
  std::uint32_t batch_per_tile;
  std::uint32_t batch_tiles_per_group;

  struct Costs {
    std::uint64_t tile_macs;
    std::uint64_t macs_per_output;  ///< to read or widen a matrix row, besides its dots
    std::uint32_t outputs_at_once;  ///< matrix rows that a tile multiplies with each input
  };
  static constexpr MatmulTiles plan(std::uint32_t n_out, std::uint32_t n_in, std::uint32_t n_batch,
                                    Costs costs) {
    const std::uint64_t width = std::max(n_in, 1u);
    const std::uint64_t cached = kCachedInputBytes / (width * sizeof(float));
    // A register tile reuses whole groups of outputs and inputs, so reduce the outputs until a tile
    // holds a group of inputs.
    std::uint64_t group = std::min(costs.outputs_at_once, std::max(n_out, 1u));
    while (group > 1 && inputs_for(group, width, costs) < std::min(n_batch, kDotInputGroup))
      group /= 2;
    const std::uint64_t batch =
        part_of(n_batch, std::min(inputs_for(group, width, costs), cached), kDotInputGroup);
    const std::uint64_t most = costs.tile_macs / (width * batch + costs.macs_per_output);
    const std::uint64_t outputs = part_of(
        n_out, most, most < costs.outputs_at_once ? kDotOutputGroup : costs.outputs_at_once);
    const auto per_tile = static_cast<std::uint32_t>(batch);
    const std::uint64_t in_turn =
        std::clamp<std::uint64_t>(cached / batch, 1, std::max(tiles_for(n_batch, per_tile), 1u));
    return {n_out,
            n_batch,
            costs.outputs_at_once,
            static_cast<std::uint32_t>(outputs),
            per_tile,
            static_cast<std::uint32_t>(in_turn)};
  }
  constexpr std::uint32_t output_tiles() const { return tiles_for(n_out, outputs_per_tile); }
  constexpr std::uint32_t batch_tiles() const { return tiles_for(n_batch, batch_per_tile); }
  constexpr std::uint32_t count() const { return output_tiles() * batch_tiles(); }
  /// One pass per group of batch rows.
  TilePasses passes() const {
    TilePasses all;
    all.add(output_tiles() * batch_tiles_per_group, batch_tiles() / batch_tiles_per_group);
    all.add(output_tiles() * (batch_tiles() % batch_tiles_per_group));
    return all;
  }
  constexpr Span32 outputs(std::uint32_t tile) const {
    return tile_span(place_of(tile).outputs, outputs_per_tile, n_out);
  }
  constexpr Span32 batch(std::uint32_t tile) const {
    return tile_span(place_of(tile).batch, batch_per_tile, n_batch);
  }

 private:
  struct Place {
    std::uint32_t outputs;  // index among the output tiles
    std::uint32_t batch;    // index among the batch tiles
  };
  constexpr Place place_of(std::uint32_t tile) const {
    const std::uint32_t whole_group = output_tiles() * batch_tiles_per_group;
    const std::uint32_t first = tile / whole_group * batch_tiles_per_group;
    const std::uint32_t in_group = tile % whole_group;
    const std::uint32_t in_turn = std::min(batch_tiles_per_group, batch_tiles() - first);
    return {in_group / in_turn, first + in_group % in_turn};
  }
  /// The number of inputs that a tile can multiply with `outputs` matrix rows.
  static constexpr std::uint64_t inputs_for(std::uint64_t outputs, std::uint64_t width,
                                            Costs costs) {
    const std::uint64_t for_rows = outputs * costs.macs_per_output;
    return costs.tile_macs > for_rows ? (costs.tile_macs - for_rows) / (outputs * width) : 0;
  }
  /// At most `most` of `all`, and at least one. The result is whole groups if `most` is at least a
  /// group.
  static constexpr std::uint64_t part_of(std::uint32_t all, std::uint64_t most,
                                         std::uint64_t group) {
    const std::uint64_t whole = most < group ? most : most - most % group;
    return std::clamp<std::uint64_t>(whole, 1, std::max(all, 1u));
  }
};

}  // namespace leasehold
