/// The tile instructions of AMX that the int8 kernel needs, and the shapes of its tiles.
///
/// A tile is a register of up to 16 rows of 64 bytes. In the product C += A·B of bytes, a row of A
/// is groups of four consecutive bytes; row k of B holds bytes 4k … 4k + 3 of each of 16 columns.
/// The unpacked codes of a strip have this layout (kernels/quant/group_format.hpp), so B is loaded
/// from them directly. Source: Intel SDM, volume 1, chapter 18, and volume 2, the instructions of
/// each function.
///
/// `Tiles` in kernels is HardwareTiles, or what tests use instead on CPUs without AMX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/group_format.hpp"

namespace leasehold::amx {

/// The operand of LDTILECFG.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};  ///< Bytes per row of tiles 0 … 7; the others are reserved.
  std::uint8_t rows[16] = {};        ///< Rows of tiles 0 … 7; the others are reserved.
};
static_assert(sizeof(TileConfig) == 64);

/// Tiles 0 … 3 are sums C, tiles 4 and 5 are factors A, and tiles 6 and 7 are factors B.
inline constexpr int kSumTiles = 4;
inline constexpr int kFirstA = 4;
inline constexpr int kFirstB = 6;

/// The configuration for `n_rows` rows of x, whose elements are multiplied `depth` at a time.
constexpr TileConfig tile_config(std::uint32_t n_rows, std::uint32_t depth) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.rows[tile] = static_cast<std::uint8_t>(tile < kFirstB ? n_rows : depth / 4);
    config.row_bytes[tile] = kPlaneBytes;
  }
  config.row_bytes[kFirstA] = config.row_bytes[kFirstA + 1] = static_cast<std::uint16_t>(depth);
  return config;
}

/// Written in assembly: GCC 12's intrinsics that load do not name the memory they read, so the
/// compiler may move a store to a buffer past them. `volatile` keeps the order of the instructions.
struct HardwareTiles {
  /// Zeroes all tiles.
  [[gnu::always_inline, gnu::target("amx-tile,amx-int8")]] static inline void configure(
      const TileConfig& config) {
    asm volatile("ldtilecfg %0" : : "m"(config) : "memory");
  }
  /// Afterwards tiles cost nothing when a thread is switched.
  [[gnu::always_inline, gnu::target("amx-tile,amx-int8")]] static inline void release() {
    asm volatile("tilerelease" : : : "memory");
  }
  template <int kTile>
  [[gnu::always_inline, gnu::target("amx-tile,amx-int8")]] static inline void load(
      const void* from, std::size_t stride_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
                 :
                 : "r"(from), "r"(stride_bytes), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  [[gnu::always_inline, gnu::target("amx-tile,amx-int8")]] static inline void store(
      void* to, std::size_t stride_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(to), "r"(stride_bytes), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  [[gnu::always_inline, gnu::target("amx-tile,amx-int8")]] static inline void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  /// C += A·B, both signed. Assembly names the operands in the opposite order.
  template <int kC, int kA, int kB>
  [[gnu::always_inline, gnu::target("amx-tile,amx-int8")]] static inline void multiply() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
  }
};

/// The shape of the calling thread's tiles, n_rows << 16 | depth; 0: not configured.
template <class Tiles>
inline constinit thread_local std::uint32_t configured_shape = 0;

/// Configures the calling thread's tiles, unless they have this shape already.
template <class Tiles>
[[gnu::always_inline, gnu::target("amx-tile,amx-int8")]] inline void configure_tiles(
    std::uint32_t n_rows, std::uint32_t depth) {
  const std::uint32_t shape = n_rows << 16 | depth;
  if (configured_shape<Tiles> == shape) return;
  Tiles::configure(tile_config(n_rows, depth));
  configured_shape<Tiles> = shape;
}

/// Releases what configure_tiles configured, if anything.
template <class Tiles>
[[gnu::target("amx-tile,amx-int8")]] void release_tiles() {
  if (configured_shape<Tiles> == 0) return;
  Tiles::release();
  configured_shape<Tiles> = 0;
}

}  // namespace leasehold::amx
