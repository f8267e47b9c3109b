/// How a kernel rounds a row of floats to int8 (kernels/cuda/device/int8/int8_rows.hpp), with the
/// bits of round_row.
///
/// Threads: whole warps call these functions. The values are visible to the warp before the call.
#pragma once

#include "kernels/cuda/device/int8/int8_rows.hpp"
#include "kernels/cuda/device/tiles.cuh"
#include "kernels/cuda/device/warp_collectives.cuh"

namespace leasehold::device {

/// The elements of a block that a lane holds: lane, lane + 32, …
template <std::uint32_t kBlock>
inline constexpr std::uint32_t kRoundedPerLane = kBlock / kWarp;

/// The sum over the 16 lanes of a strip.
__device__ __forceinline__ std::int32_t strip_sum(std::int32_t own) {
  for (std::uint32_t distance = kInt8Strip / 2; distance > 0; distance /= 2)
    own += __shfl_xor_sync(kAllLanes, own, distance);
  return own;
}

/// Rounds block b of a row, whose element i is `values[i]`.
template <std::uint32_t kBlock, class Values>
__device__ __forceinline__ void round_block(const Int8Rows& to, std::uint32_t row, std::uint32_t b,
                                            const Values& values) {
  float own[kRoundedPerLane<kBlock>];
  std::uint32_t largest = 0;
#pragma unroll
  for (std::uint32_t i = 0; i < kRoundedPerLane<kBlock>; ++i) {
    own[i] = values[b * kBlock + i * kWarp + lane_of_warp()];
    largest = largest > magnitude_bits(own[i]) ? largest : magnitude_bits(own[i]);
  }
  const float d = int8_scale(warp_largest(largest));
  const std::size_t first = std::size_t{row} * to.n_in + std::size_t{b} * kBlock;
#pragma unroll
  for (std::uint32_t i = 0; i < kRoundedPerLane<kBlock>; ++i) {
    const auto q = static_cast<std::int32_t>(d > 0 ? rounded_half_even(own[i] / d) : 0.0F);
    const std::size_t at = first + i * kWarp + lane_of_warp();
    to.q[at] = static_cast<std::int8_t>(q);
    const std::int32_t sum = strip_sum(q);
    if (lane_of_warp() % kInt8Strip != 0) continue;
    const std::size_t strip = at / kInt8Strip;
    if constexpr (kBlock == kMinInt8Block)
      to.sums[strip] = static_cast<std::int16_t>(sum);
    else
      to.split_sums(strip / 4)->set(strip % 4, sum);
  }
  if (lane_of_warp() == 0) to.scales[first / kBlock] = d;
}

/// Rounds blocks first, first + stride … below `end` of a row.
template <class Values>
__device__ __forceinline__ void round_blocks(const Int8Rows& to, std::uint32_t row,
                                             const Values& values, std::uint32_t first,
                                             std::uint32_t end, std::uint32_t stride) {
  for (std::uint32_t b = first; b < end; b += stride) {
    if (to.block == kMinInt8Block) {
      round_block<kMinInt8Block>(to, row, b, values);
    } else {
      round_block<256>(to, row, b, values);
    }
  }
}

/// Rounds a whole row with all warps of the block, which have passed a barrier since they stored
/// the values.
__device__ __forceinline__ void round_whole_row(const Int8Rows& to, std::uint32_t row,
                                                const float* values) {
  round_blocks(to, row, values, warp_of_block(), to.n_in / to.block, blockDim.x / kWarp);
}

}  // namespace leasehold::device
