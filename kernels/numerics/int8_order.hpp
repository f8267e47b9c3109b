/// The order of int8 arithmetic: how activations are rounded, and how products of blocks are added.
///
/// A row of activations is rounded once, in blocks of 32, so that the products of a block are a sum
/// of integers, which is exact in any order:
///   d    = largest |x| / 127; 0 if that is below 2^-119, NaN if an element is not finite
///   q[i] = x[i] / d, rounded half to even; 0 where d is 0 or NaN
///   s(b) = Σ w[i] · q[i] of block b; |s| < 2^24, so that its conversion to float is exact
///
/// The n blocks of a row form 8 chunks of ceil(n / 8) consecutive blocks; the last ones may be
/// shorter or empty. Block results are added in this order:
///   c(k) = 0, then fma(d_w(b) · d(b), s(b), c(k)) for each block b of chunk k, ascending
///   dot  = c(0) + c(1) + …, from the left, without empty chunks
///
/// Every tiling, batch and instruction set therefore gives the same bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace leasehold {

inline constexpr std::uint32_t kInt8Block = 32;
inline constexpr std::uint32_t kInt8Chunks = 8;

/// Blocks per chunk.
constexpr std::uint32_t int8_chunk_blocks(std::uint32_t n_blocks) {
  return (n_blocks + kInt8Chunks - 1) / kInt8Chunks;
}

/// A rounded row of n elements.
struct RoundedRow {
  const std::int8_t* q;      // [n]
  const float* scale;        // [n / 32]
  const std::int32_t* sums;  // [n / 32]: the sum of q of each block
};

/// Room for a rounded row.
struct RoundedRowBuffer {
  std::int8_t* q;
  float* scale;
  std::int32_t* sums;
};

/// The scale of a block from the bits of its largest |x|, which order like the numbers; those of
/// infinity and NaN are above all others.
inline float int8_scale(std::uint32_t largest_bits) {
  constexpr std::uint32_t kInfinityBits = 0x7F800000;
  constexpr float kLeast = 0x1p-119F;
  if (largest_bits >= kInfinityBits) return std::numeric_limits<float>::quiet_NaN();
  const auto largest = std::bit_cast<float>(largest_bits);
  return largest < kLeast ? 0.0F : largest / 127.0F;
}

/// Rounds half to even. Precondition: |x| < 2^22.
inline float rounded_half_even(float x) {
  constexpr float kShift = 0x1.8p23F;
  return (x + kShift) - kShift;
}

/// Rounds a row of n elements, a multiple of 32.
inline void round_row(const float* x, std::size_t n, const RoundedRowBuffer& out) {
  for (std::size_t b = 0; b < n / kInt8Block; ++b) {
    const float* block = x + b * kInt8Block;
    std::uint32_t largest = 0;
    for (std::uint32_t i = 0; i < kInt8Block; ++i)
      largest = std::max(largest, std::bit_cast<std::uint32_t>(block[i]) & 0x7FFFFFFF);
    const float d = int8_scale(largest);
    std::int32_t sum = 0;
    for (std::uint32_t i = 0; i < kInt8Block; ++i) {
      const float q = d > 0 ? rounded_half_even(block[i] / d) : 0.0F;
      out.q[b * kInt8Block + i] = static_cast<std::int8_t>(q);
      sum += static_cast<std::int32_t>(q);
    }
    out.scale[b] = d;
    out.sums[b] = sum;
  }
}

}  // namespace leasehold
