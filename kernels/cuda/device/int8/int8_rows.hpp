/// Rows of activations that are rounded to int8 (kernels/numerics/int8_order.hpp), for matmuls of
/// row groups. Plain data, the same for the host compiler and nvcc. C++20-clean.
#pragma once

#include <cstdint>

#include "kernels/numerics/int8_order.hpp"

namespace leasehold::device {

/// The sums of q of four strips as 128 · high + low, in signed bytes, so that dp4a and mma multiply
/// them. The sums of two strips fit a byte, too.
struct alignas(8) SplitSums {
  std::int8_t high[4];
  std::int8_t low[4];

  LEASEHOLD_HD void set(std::uint32_t strip, std::int32_t sum) {
    const std::int32_t upper = (sum + 64) >> 7;
    high[strip] = static_cast<std::int8_t>(upper);
    low[strip] = static_cast<std::int8_t>(sum - upper * 128);
  }
};
static_assert(sizeof(SplitSums) == 4 * sizeof(std::int16_t));

/// Where to store or find the rounded rows of an array.
struct Int8Rows {
  std::int8_t* q;       ///< [n_rows, n_in]; aligned to 16 bytes. Null: no rows are wanted.
  float* scales;        ///< [n_rows, n_in / block]
  std::int16_t* sums;   ///< [n_rows, n_in / 16]: the sum of q of each strip, with blocks of 256 as
                        ///< SplitSums; aligned to 4 bytes, with blocks of 256 to 16
  std::uint32_t n_in;   ///< Elements per row, whole blocks.
  std::uint32_t block;  ///< Elements that are rounded together: 32 or 256.

  /// The sums of the strips from 4n on, counted over all rows.
  LEASEHOLD_HD SplitSums* split_sums(std::size_t n) const {
    return reinterpret_cast<SplitSums*>(sums) + n;
  }
};

/// Places `n_rows` rounded rows in memory of int8_rows_bytes(n_rows, n_in), aligned to 16 bytes.
inline Int8Rows int8_rows_at(std::byte* at, std::uint32_t n_rows, std::uint32_t n_in,
                             std::uint32_t block) {
  const std::size_t elements = std::size_t{n_rows} * n_in;
  auto* const sums = reinterpret_cast<std::int16_t*>(at + elements);
  return {.q = reinterpret_cast<std::int8_t*>(at),
          .scales = reinterpret_cast<float*>(sums + elements / kInt8Strip),
          .sums = sums,
          .n_in = n_in,
          .block = block};
}
constexpr std::size_t int8_rows_bytes(std::uint32_t n_rows, std::uint32_t n_in) {
  const std::size_t elements = std::size_t{n_rows} * n_in;
  return elements + elements / kInt8Strip * sizeof(std::int16_t) +
         elements / kMinInt8Block * sizeof(float);
}

}  // namespace leasehold::device
