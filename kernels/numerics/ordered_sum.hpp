/// The order of float additions. Every path gives the bits of these loops.
///
/// Element i goes to *lane* i mod 32, in ascending order; then the lanes fold in halves: lane j
/// adds lane j + 16, then j + 8, j + 4, j + 2 and j + 1. The elements of a short tail go to their
/// own lanes; the other lanes keep their bits. 32 lanes are four AVX2 registers, two AVX-512
/// registers, or a warp. C++20-clean.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/numerics/f16.hpp"

namespace leasehold {

inline constexpr std::uint32_t kSumLanes = 32;

/// Adds up the lanes; overwrites them.
inline float fold_lanes(float (&lanes)[kSumLanes]) {
  for (std::uint32_t half = kSumLanes / 2; half > 0; half /= 2)
    for (std::uint32_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  return lanes[0];
}

/// Σ a[i]·b[i]; one fma adds each product to its lane.
template <class A>
float ordered_dot(const A* a, const float* b, std::size_t n) {
  float lanes[kSumLanes] = {};
  for (std::size_t i = 0; i < n; ++i)
    lanes[i % kSumLanes] = std::fma(as_float(a[i]), b[i], lanes[i % kSumLanes]);
  return fold_lanes(lanes);
}

/// Σ x[i]
inline float ordered_sum(const float* x, std::size_t n) {
  float lanes[kSumLanes] = {};
  for (std::size_t i = 0; i < n; ++i) lanes[i % kSumLanes] += x[i];
  return fold_lanes(lanes);
}

}  // namespace leasehold
