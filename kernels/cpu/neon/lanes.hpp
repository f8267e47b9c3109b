/// The 32 lanes of an ordered sum in registers of four floats, and loads of four elements as
/// floats.
#pragma once

#include <arm_neon.h>

#include <cmath>
#include <cstdint>

#include "kernels/numerics/f16.hpp"
#include "kernels/numerics/ordered_sum.hpp"

namespace leasehold::neon {

inline constexpr std::uint32_t kWidth = 4;
/// Registers that hold the 32 lanes of a dot.
inline constexpr int kParts = kSumLanes / kWidth;

/// Lanes 4p … 4p + 3 are in register p.
using Lanes = float32x4_t[kParts];

inline float32x4_t load4(const float* from) {
  return vld1q_f32(from);
}
inline float32x4_t load4(const Half* from) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
}
inline float32x4_t load4(const Bfloat* from) {
  const uint16x4_t upper = vld1_u16(reinterpret_cast<const std::uint16_t*>(from));
  return vreinterpretq_f32_u32(vshll_n_u16(upper, 16));
}

/// Adds the last n < 32 products to their lanes, and folds the lanes. A lane without an element
/// keeps its bits.
template <class Element>
float fold_with_tail(const Lanes& lanes, const Element* w, const float* x, std::size_t n) {
  float all[kSumLanes];
  for (int p = 0; p < kParts; ++p) vst1q_f32(all + std::size_t(p) * kWidth, lanes[p]);
  for (std::size_t i = 0; i < n; ++i) all[i] = std::fma(as_float(w[i]), x[i], all[i]);
  return fold_lanes(all);
}

/// The ordered dot of two rows of n floats.
inline float dot(const float* a, const float* b, std::size_t n) {
  Lanes lanes = {};
  const std::size_t whole = n / kSumLanes * kSumLanes;
  for (std::size_t at = 0; at < whole; at += kSumLanes)
#pragma GCC unroll 8
    for (int p = 0; p < kParts; ++p)
      lanes[p] = vfmaq_f32(lanes[p], load4(a + at + p * kWidth), load4(b + at + p * kWidth));
  return fold_with_tail(lanes, a + whole, b + whole, n - whole);
}

}  // namespace leasehold::neon
