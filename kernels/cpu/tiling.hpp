/// The size of a unit: small enough that a revocation waits at most about 15 µs for it.
///
/// Costs are counted in multiply-adds ("MACs"). One thread does about 8e9 per second, the rate of
/// AVX2 dots of dequantised rows. Tiling never changes the bits of a result.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace leasehold {

/// 12 µs at 8e9 MAC/s, which leaves time for dequantising and for a slower core.
inline constexpr std::uint64_t kTileMacs = 96'000;

/// Costs per element other than plain dots, in MACs.
inline constexpr std::uint64_t kMacsPerDequantized = 1;
inline constexpr std::uint64_t kMacsPerElement = 4;   ///< norm, rope, f16 stores, copies of rows
inline constexpr std::uint64_t kMacsPerExp = 16;      ///< silu
inline constexpr std::size_t kCopyTileBytes = 65536;  ///< with first-touch page faults

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

/// Cuts a matmul into tiles of matrix rows. If one matrix row times all batch rows exceeds a tile,
/// it cuts the batch rows too. Tiles of one matrix row are neighbours: memory supplies the row
/// once, then the cache does.
struct MatmulTiles {
  std::uint32_t n_out;
  std::uint32_t n_batch;
  std::uint32_t outputs_per_tile;
  std::uint32_t batch_per_tile;

  static constexpr MatmulTiles plan(std::uint32_t n_out, std::uint32_t n_in,
                                    std::uint32_t n_batch) {
    const std::uint64_t row = std::max(n_in, 1u);
    const std::uint64_t affordable = kTileMacs / row;
    const std::uint64_t batch = std::clamp<std::uint64_t>(
        affordable > kMacsPerDequantized ? affordable - kMacsPerDequantized : 1, 1, n_batch);
    return {n_out, n_batch, items_per_tile(row * (batch + kMacsPerDequantized)),
            static_cast<std::uint32_t>(batch)};
  }
  constexpr std::uint32_t batch_tiles() const { return tiles_for(n_batch, batch_per_tile); }
  constexpr std::uint32_t count() const {
    return tiles_for(n_out, outputs_per_tile) * batch_tiles();
  }
  constexpr Span32 outputs(std::uint32_t tile) const {
    return tile_span(tile / batch_tiles(), outputs_per_tile, n_out);
  }
  constexpr Span32 batch(std::uint32_t tile) const {
    return tile_span(tile % batch_tiles(), batch_per_tile, n_batch);
  }
};

}  // namespace leasehold
