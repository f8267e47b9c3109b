/// How a kernel stores a row of floats as tiles (kernels/cuda/device/tiles.hpp).
///
///   const std::uint32_t largest = block_max(largest_magnitude of my elements, scratch);
///   store_tile_row(tiles, row, values, largest);
///
/// Threads: the whole block calls each function, with the same arguments except `own`. All writes
/// to `values` must be visible before the call; block_max is a barrier too.
#pragma once

#include "kernels/cuda/device/simt.cuh"
#include "kernels/cuda/device/tiles.hpp"

namespace leasehold::device {

__device__ __forceinline__ float float_of_bits(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
__device__ __forceinline__ std::uint32_t bits_of_float(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}

inline constexpr std::uint32_t kInfinityBits = 0x7f800000;

/// Magnitudes as integers in the same order. A NaN ranks above everything, so it is not lost.
__device__ __forceinline__ std::uint32_t magnitude_bits(float x) {
  return bits_of_float(x) & 0x7fffffff;
}

/// The largest `own` of the warp, for every lane.
__device__ __forceinline__ std::uint32_t warp_largest(std::uint32_t own) {
  for (std::uint32_t distance = 16; distance > 0; distance /= 2) {
    const std::uint32_t other = __shfl_xor_sync(0xffffffffu, own, distance);
    own = own > other ? own : other;
  }
  return own;
}

/// The largest `own` of the block, for every thread. `scratch` is shared, [32]; the caller may
/// reuse it after the next barrier.
__device__ __forceinline__ std::uint32_t block_max(std::uint32_t own, std::uint32_t* scratch) {
  own = warp_largest(own);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = own;
  __syncthreads();
  std::uint32_t largest = 0;
  for (std::uint32_t warp = 0; warp < blockDim.x / 32; ++warp)
    largest = largest > scratch[warp] ? largest : scratch[warp];
  return largest;
}

/// The exponent of the power of two that scales `largest` into [2^14, 2^15). Rows of zeros and rows
/// that are not finite are not scaled. Below 2^-112 the power is the largest one whose inverse is a
/// normal float.
__device__ __forceinline__ std::int32_t tile_exponent(std::uint32_t largest) {
  if (largest == 0 || largest >= kInfinityBits) return 0;
  const std::int32_t exponent = 14 + 127 - static_cast<std::int32_t>(largest >> 23);
  return exponent < 126 ? exponent : 126;
}
__device__ __forceinline__ float power_of_two(std::int32_t exponent) {
  return float_of_bits(static_cast<std::uint32_t>(exponent + 127) << 23);
}

/// The factor for a product of the row's halves; NaN for a row that is not finite.
__device__ __forceinline__ float tile_scale(std::uint32_t largest) {
  if (largest >= kInfinityBits) return float_of_bits(0x7fc00000);
  return power_of_two(-tile_exponent(largest));
}

/// Stores elements 8·octet … + 7 of a row, times `power`.
__device__ __forceinline__ void store_tile_octet(const TileRows& tiles, std::uint32_t row,
                                                 std::uint32_t octet, const float (&elements)[8],
                                                 float power) {
  const std::uint64_t group = std::uint64_t{row / kTileRows} * (padded_columns(tiles.n_in) / 8);
  const std::uint32_t core = octet / 4 * 4;
  auto* words = reinterpret_cast<std::uint32_t*>(tiles.halves + (group + core) * kCoreHalves) +
                row % kTileRows * 4 + octet % 4;
  for (std::uint32_t c = 0; c < 4; ++c)
    words[c * (kCoreHalves / 2)] =
        pack_halves(elements[2 * c] * power, elements[2 * c + 1] * power);
}

/// Stores the whole row: `values` are [n_in] floats in shared or device memory, `largest` is their
/// largest magnitude as bits. Each thread stores eight elements at a time, and the padding.
__device__ __forceinline__ void store_tile_row(const TileRows& tiles, std::uint32_t row,
                                               const float* values, std::uint32_t largest) {
  const float power = power_of_two(tile_exponent(largest));
  for (std::uint32_t octet = threadIdx.x; octet < padded_columns(tiles.n_in) / 8;
       octet += blockDim.x) {
    float elements[8];
    for (std::uint32_t i = 0; i < 8; ++i)
      elements[i] = 8 * octet + i < tiles.n_in ? values[8 * octet + i] : 0.0F;
    store_tile_octet(tiles, row, octet, elements, power);
  }
  if (threadIdx.x == 0) tiles.scales[row] = tile_scale(largest);
}

}  // namespace leasehold::device
