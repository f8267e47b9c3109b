/// Activations for tensor cores: halves in *tiles*, with one power of two per row. Plain data, the
/// same for the host compiler and nvcc. C++20-clean.
///
/// A row of floats is scaled by the power of two that brings its largest magnitude into [2^14,
/// 2^15), rounded to halves once, and padded with zeros to a multiple of 256. Rows form groups of
/// eight, cut into *cores* of 8 rows × 8 columns, 128 bytes each:
///
///   halves[row / 8][column / 8][row % 8][column % 8]
///
/// Columns are elements in permuted order. A thread of a warp's quad should load eight neighbouring
/// weights, 8t … 8t+7 of each group of 32, because formats store them together. In the fragments of
/// mma.m16n8k16 the thread holds columns {2t, 2t+1, 2t+8, 2t+9} of each 16. So within group j of
/// 32, elements 8t+2c and 8t+2c+1 are in core 4j + c, columns 2t and 2t+1. (Source: PTX ISA,
/// fragments of mma.m16n8k16 and core matrices of wgmma.)
#pragma once

#include <cstdint>

#include "kernels/numerics/host_device.hpp"

namespace leasehold::device {

inline constexpr std::uint32_t kTileRows = 8;
inline constexpr std::uint32_t kTileColumns = 8;
inline constexpr std::uint32_t kCoreHalves = kTileRows * kTileColumns;
inline constexpr std::uint32_t kGroup = 32;        ///< Elements are permuted within a group.
inline constexpr std::uint32_t kSliceGrain = 256;  ///< Row padding and slices are multiples of it.
inline constexpr std::uint32_t kMaxSlices = 8;

/// The length of a padded row.
LEASEHOLD_HD constexpr std::uint32_t padded_columns(std::uint32_t n_in) {
  return (n_in + kSliceGrain - 1) / kSliceGrain * kSliceGrain;
}

/// The elements per slice of a product; depends on the shape alone.
LEASEHOLD_HD constexpr std::uint32_t slice_length(std::uint32_t n_in) {
  const std::uint32_t part = (n_in + kMaxSlices - 1) / kMaxSlices;
  return part <= kSliceGrain ? kSliceGrain : padded_columns(part);
}
LEASEHOLD_HD constexpr std::uint32_t slice_count(std::uint32_t n_in) {
  return (n_in + slice_length(n_in) - 1) / slice_length(n_in);
}

/// Slices are computed in parts, each of this many whole slices.
LEASEHOLD_HD constexpr std::uint32_t slices_per_part(std::uint32_t n_in, std::uint32_t n_parts) {
  return (slice_count(n_in) + n_parts - 1) / n_parts;
}

/// The number of halves for `n_rows` rows, rounded up to whole groups of eight.
LEASEHOLD_HD constexpr std::uint64_t tile_halves(std::uint32_t n_rows, std::uint32_t n_in) {
  return std::uint64_t{(n_rows + kTileRows - 1) / kTileRows * kTileRows} * padded_columns(n_in);
}

/// The tiles of an array: where to store or find them.
struct TileRows {
  std::uint16_t* halves;  ///< [n_rows / 8, padded_columns / 8, 8, 8]; aligned to 128 bytes
  float* scales;          ///< [n_rows] factors for products of the row's halves
  std::uint32_t n_in;     ///< Elements per row.
};

}  // namespace leasehold::device
