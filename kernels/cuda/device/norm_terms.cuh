/// The numbers of a norm that are the same for a whole row, and what they make of an element.
/// `Norm` has the members width, epsilon, scale and is_centered of RmsNormParams.
///
/// Threads: one warp, so that the sums have the lanes of ordered_dot.
#pragma once

#include "kernels/cuda/device/warp_collectives.cuh"

namespace leasehold::device {

/// The mean of a row's vector, 0 if it is not subtracted, and the factor of the rest.
struct NormTerms {
  float mean;
  float factor;
};

template <class Norm>
__device__ __forceinline__ NormTerms warp_norm_terms(const Norm& norm, const float* values) {
  float mean = 0.0F;
  if (norm.is_centered != 0) {
    for (std::uint32_t i = lane_of_warp(); i < norm.width; i += kWarp) mean += values[i];
    mean = fold_warp(mean) / static_cast<float>(norm.width);
  }
  float squares = 0.0F;
#pragma unroll 8
  for (std::uint32_t i = lane_of_warp(); i < norm.width; i += kWarp) {
    const float x = values[i] - mean;
    squares = fmaf(x, x, squares);
  }
  squares = fold_warp(squares);
  return {mean, norm.scale / sqrtf(squares / static_cast<float>(norm.width) + norm.epsilon)};
}

/// An element before `out_scale`.
__device__ __forceinline__ float normed(const NormTerms& terms, float x, float weight) {
  return ((x - terms.mean) * terms.factor) * weight;
}

}  // namespace leasehold::device
