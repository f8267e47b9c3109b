/// The tile instructions of AMX in plain C++, for CPUs that lack them: palette 1 with the rows and
/// row bytes of a configuration, as the Intel SDM describes each instruction. An operand that the
/// hardware would refuse with an exception ends the test.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "common/expects.hpp"
#include "kernels/cpu/amx/support.hpp"
#include "kernels/cpu/amx/tiles.hpp"

namespace leasehold::testing {

/// The kernel around the tiles needs AVX-512.
inline bool can_emulate_tiles() {
  return amx::support().has_avx512;
}

/// Threads: each has tiles of its own.
class EmulatedTiles {
 public:
  static constexpr std::size_t kMaxRows = 16;
  static constexpr std::size_t kMaxRowBytes = 64;

  static void configure(const amx::TileConfig& config) {
    check(config);
    if (!is_configured_) ++configured_threads;
    ++configurations;
    is_configured_ = true;
    for (std::size_t i = 0; i < tiles_.size(); ++i)
      tiles_[i] = {.rows = config.rows[i], .row_bytes = config.row_bytes[i], .bytes = {}};
  }
  static void release() {
    if (is_configured_) --configured_threads;
    is_configured_ = false;
    tiles_ = {};
  }
  template <int kTile>
  static void load(const void* from, std::size_t stride_bytes) {
    Tile& tile = used(kTile);
    tile.bytes = {};
    for (std::size_t row = 0; row < tile.rows; ++row)
      std::memcpy(tile.row(row), static_cast<const std::byte*>(from) + row * stride_bytes,
                  tile.row_bytes);
  }
  template <int kTile>
  static void store(void* to, std::size_t stride_bytes) {
    Tile& tile = used(kTile);
    for (std::size_t row = 0; row < tile.rows; ++row)
      std::memcpy(static_cast<std::byte*>(to) + row * stride_bytes, tile.row(row), tile.row_bytes);
  }
  template <int kTile>
  static void zero() {
    used(kTile).bytes = {};
  }
  /// TDPBSSD
  template <int kC, int kA, int kB>
  static void multiply() {
    multiply_as<std::int8_t, std::int8_t>(used(kC), used(kA), used(kB));
  }

  /// Threads whose tiles are configured now.
  static inline std::atomic<int> configured_threads = 0;
  static inline std::atomic<std::uint64_t> configurations = 0;

 protected:
  struct Tile {
    std::size_t rows;
    std::size_t row_bytes;
    std::array<std::byte, kMaxRows * kMaxRowBytes> bytes;

    std::byte* row(std::size_t index) { return bytes.data() + index * kMaxRowBytes; }
  };

  /// #UD for a tile that is not configured.
  static Tile& used(int index) {
    expects(is_configured_, "tiles are configured");
    Tile& tile = tiles_.at(static_cast<std::size_t>(index));
    expects(tile.rows != 0 && tile.row_bytes != 0, "the tile is configured");
    return tile;
  }

  /// With A of bytes of type `Left` and B of bytes of type `Right`.
  template <class Left, class Right>
  static void multiply_as(Tile& c, Tile& a, Tile& b) {
    expects(&c != &a && &c != &b && &a != &b, "three different tiles");
    expects(c.row_bytes % 4 == 0 && a.row_bytes % 4 == 0 && b.row_bytes % 4 == 0,
            "rows are whole groups of four bytes");
    expects(c.rows == a.rows && a.row_bytes / 4 == b.rows && c.row_bytes == b.row_bytes,
            "the shapes of A, B and C fit");
    for (std::size_t m = 0; m < c.rows; ++m)
      for (std::size_t k = 0; k < a.row_bytes / 4; ++k)
        for (std::size_t n = 0; n < c.row_bytes / 4; ++n)
          add_four<Left, Right>(c.row(m) + n * 4, a.row(m) + k * 4, b.row(k) + n * 4);
  }

 private:
  template <class Left, class Right>
  static void add_four(std::byte* sum, const std::byte* a, const std::byte* b) {
    std::uint32_t total;  // wraps around, as in hardware
    std::memcpy(&total, sum, sizeof total);
    for (int i = 0; i < 4; ++i)
      total += static_cast<std::uint32_t>(static_cast<Left>(a[i]) * static_cast<Right>(b[i]));
    std::memcpy(sum, &total, sizeof total);
  }

  /// #GP for a configuration that is not one of palette 1.
  static void check(const amx::TileConfig& config) {
    expects(config.palette == 1 && config.start_row == 0, "palette 1 from row 0");
    for (const std::uint8_t byte : config.reserved) expects(byte == 0, "reserved bytes are zero");
    for (std::size_t i = 0; i < std::size(config.rows); ++i) {
      expects(i < 8 || (config.rows[i] == 0 && config.row_bytes[i] == 0), "eight tiles");
      expects(config.rows[i] <= kMaxRows && config.row_bytes[i] <= kMaxRowBytes,
              "a tile has up to 16 rows of 64 bytes");
      expects((config.rows[i] == 0) == (config.row_bytes[i] == 0), "rows have bytes");
    }
  }

  static inline constinit thread_local bool is_configured_ = false;
  static inline constinit thread_local std::array<Tile, 8> tiles_ = {};
};

}  // namespace leasehold::testing
