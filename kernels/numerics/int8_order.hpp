/// The order of int8 arithmetic: how activations are rounded, and how products of blocks are added.
///
/// A row of activations is rounded once, in blocks of the size of the weights' blocks, 32 or 256.
/// The products of a block are then a sum of integers, which is exact in any order:
///   d    = largest |x| / 127; 0 if largest |x| < 2^-119, NaN if an element is not finite
///   q[i] = x[i] / d, rounded half to even; 0 where d is 0 or NaN
///
/// Block b of a weight row has a scale d_w, and may have a minimum or a scale of minima m_w. Let w
/// be the integers that d_w multiplies, and in blocks of 256 let `scale` and `min` be the integer
/// scale and minimum of a sub-block:
///   32 elements    s(b) = Σ w[i] · q[i]                      t(b) = Σ q[i]
///   256 elements   s(b) = Σ scale · (Σ w[i] · q[i])          t(b) = -Σ min · (Σ q[i])
/// s and t are exact in 32 bits. float(s) is exact below 2^24, which blocks of 256 may exceed; it
/// rounds half to even.
///
/// The n blocks of a row form 8 chunks of ceil(n / 8) consecutive blocks; the last ones may be
/// shorter or empty. Block results are added in this order:
///   c(k) = 0, then for each block b of chunk k, ascending:
///          fma(d_w(b) · d(b), float(s(b)), c(k)), and with a minimum
///          fma(m_w(b) · d(b), float(t(b)), c(k))
///   dot  = c(0) + c(1) + …, from the left, without empty chunks
///
/// Therefore every tiling, batch and instruction set gives the same bits, and so does a card.
/// C++20-clean.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/numerics/host_device.hpp"

namespace leasehold {

/// The smallest number of elements in a block, and in a row.
inline constexpr std::uint32_t kMinInt8Block = 32;
inline constexpr std::uint32_t kInt8Chunks = 8;
/// Elements whose q are added up in one entry of RoundedRow::sums.
inline constexpr std::uint32_t kInt8Strip = 16;

/// Blocks per chunk.
LEASEHOLD_HD constexpr std::uint32_t int8_chunk_blocks(std::uint32_t n_blocks) {
  return (n_blocks + kInt8Chunks - 1) / kInt8Chunks;
}

/// A rounded row of n elements.
struct RoundedRow {
  const std::int8_t* q;      // [n]
  const float* scale;        // [n / elements of a block]
  const std::int16_t* sums;  // [n / 16]: the sum of q of each strip
};

/// Memory for a rounded row, with the sizes given in RoundedRow.
struct RoundedRowBuffer {
  std::int8_t* q;
  float* scale;
  std::int16_t* sums;
};

/// The scale of a block. `largest_bits` are the bits of its largest |x|. The bits of non-negative
/// floats order like their values, and those of infinity and NaN are above all finite ones.
LEASEHOLD_HD inline float int8_scale(std::uint32_t largest_bits) {
  constexpr std::uint32_t kEndOfFinite = 0x7F800000;
  constexpr std::uint32_t kQuietNan = 0x7FC00000;
  constexpr float kLeast = 0x1p-119F;
  if (largest_bits >= kEndOfFinite) return __builtin_bit_cast(float, kQuietNan);
  const auto largest = __builtin_bit_cast(float, largest_bits);
  return largest < kLeast ? 0.0F : largest / 127.0F;
}

/// Rounds half to even. Precondition: |x| < 2^22.
LEASEHOLD_HD inline float rounded_half_even(float x) {
  constexpr float kShift = 0x1.8p23F;
  return (x + kShift) - kShift;
}

/// Rounds a row of n elements in blocks of `block` (32 or 256), which divides n.
inline void round_row(const float* x, std::size_t n, std::uint32_t block,
                      const RoundedRowBuffer& out) {
  for (std::size_t b = 0; b < n / block; ++b) {
    std::uint32_t largest = 0;
    for (std::size_t i = b * block; i < (b + 1) * block; ++i)
      largest = std::max(largest, std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFF);
    const float d = int8_scale(largest);
    out.scale[b] = d;
    std::fill_n(out.sums + b * (block / kInt8Strip), block / kInt8Strip, std::int16_t{0});
    for (std::size_t i = b * block; i < (b + 1) * block; ++i) {
      const float q = d > 0 ? rounded_half_even(x[i] / d) : 0.0F;
      out.q[i] = static_cast<std::int8_t>(q);
      out.sums[i / kInt8Strip] = static_cast<std::int16_t>(out.sums[i / kInt8Strip] + out.q[i]);
    }
  }
}

}  // namespace leasehold
