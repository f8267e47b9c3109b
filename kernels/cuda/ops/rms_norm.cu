/// out (+)= x · scale / sqrt(mean(x²) + epsilon) · weight, then times out_scale, with the
/// reference's bits: one warp sums the squares in the lanes of ordered_dot.
#include "kernels/cuda/device/int8/int8_rows.cuh"
#include "kernels/cuda/device/norm_params.hpp"
#include "kernels/cuda/device/norm_terms.cuh"
#include "kernels/cuda/device/tiles.cuh"
#include "kernels/cuda/device/warp_collectives.cuh"

namespace leasehold::device {

__device__ __forceinline__ float out_scale(const RmsNormParams& p) {
  return p.out_scale != nullptr ? *p.out_scale : 1.0F;
}

__device__ __forceinline__ std::uint32_t larger(std::uint32_t a, std::uint32_t b) {
  return a > b ? a : b;
}

/// Computed by the first warp, for every thread.
__device__ __forceinline__ NormTerms block_norm_terms(const RmsNormParams& p, const float* values) {
  __shared__ NormTerms terms;
  if (warp_of_block() == 0) {
    const NormTerms computed = warp_norm_terms(p, values);
    if (threadIdx.x == 0) terms = computed;
  }
  __syncthreads();
  return terms;
}

/// The row in quads. Each thread holds up to kOwnQuads, so that the loads of x and of the weight
/// are in flight at once.
struct NormQuads {
  static constexpr std::uint32_t kOwnQuads = 4;
  float4 x[kOwnQuads];
  float4 weight[kOwnQuads];

  /// Loads the thread's quads and copies x to shared memory.
  __device__ __forceinline__ void load(const RmsNormParams& p, const float* row,
                                       const float* weights, float* shared) {
#pragma unroll
    for (std::uint32_t q = 0; q < kOwnQuads; ++q) {
      const std::uint32_t i = threadIdx.x + q * blockDim.x;
      if (i >= p.width / 4) break;
      x[q] = reinterpret_cast<const float4*>(row)[i];
      weight[q] = reinterpret_cast<const float4*>(weights)[i];
    }
#pragma unroll
    for (std::uint32_t q = 0; q < kOwnQuads; ++q) {
      const std::uint32_t i = threadIdx.x + q * blockDim.x;
      if (i < p.width / 4) reinterpret_cast<float4*>(shared)[i] = x[q];
    }
  }

  /// Stores the results to `out`, unless it is null, and to shared memory. Returns the largest
  /// magnitude as bits.
  __device__ __forceinline__ std::uint32_t store(const RmsNormParams& p, const NormTerms& terms,
                                                 float* out, float* shared) const {
    std::uint32_t largest = 0;
    const float scale = out_scale(p);
#pragma unroll
    for (std::uint32_t q = 0; q < kOwnQuads; ++q) {
      const std::uint32_t i = threadIdx.x + q * blockDim.x;
      if (i >= p.width / 4) break;
      float4 value = {normed(terms, x[q].x, weight[q].x), normed(terms, x[q].y, weight[q].y),
                      normed(terms, x[q].z, weight[q].z), normed(terms, x[q].w, weight[q].w)};
      if (p.accumulate != 0) {
        const float4 old = reinterpret_cast<const float4*>(out)[i];
        value = {old.x + value.x, old.y + value.y, old.z + value.z, old.w + value.w};
      }
      value = {value.x * scale, value.y * scale, value.z * scale, value.w * scale};
      if (out != nullptr) reinterpret_cast<float4*>(out)[i] = value;
      reinterpret_cast<float4*>(shared)[i] = value;
      largest = larger(larger(largest, magnitude_bits(value.x)), magnitude_bits(value.y));
      largest = larger(larger(largest, magnitude_bits(value.z)), magnitude_bits(value.w));
    }
    return largest;
  }
};

/// Normalises a row that does not fit shared memory, or whose quads are not aligned.
__device__ __forceinline__ std::uint32_t norm_singly(const RmsNormParams& p, const float* x,
                                                     const float* weights, float* out) {
  const NormTerms terms = block_norm_terms(p, x);
  std::uint32_t largest = 0;
  for (std::uint32_t i = threadIdx.x; i < p.width; i += blockDim.x) {
    const float own = normed(terms, x[i], weights[i]);
    const float value = (p.accumulate != 0 ? out[i] + own : own) * out_scale(p);
    out[i] = value;
    largest = larger(largest, magnitude_bits(value));
  }
  return largest;
}

/// One block per vector. Dynamic shared memory: [width] floats if fits_shared.
LEASEHOLD_KERNEL(lh_rms_norm, RmsNormParams, kMaxNormThreads) {
  __shared__ std::uint32_t scratch[32];
  const std::uint32_t row = blockIdx.x;
  const bool exists = row < row_count(p.gate) * p.vectors_per_row;
  if (block_engine_is_stopped(p.gate) || !exists) return;
  const float* x = p.x + std::size_t{row} * p.width;
  const float* weights = p.weight + std::size_t{row % p.vectors_per_row} * p.weight_stride;
  float* out = p.out != nullptr ? p.out + std::size_t{row} * p.width : nullptr;
  const float* results = out;
  std::uint32_t largest = 0;
  if (p.fits_shared != 0) {
    auto* const shared = reinterpret_cast<float*>(dynamic_shared());
    NormQuads own;
    own.load(p, x, weights, shared);
    __syncthreads();
    largest = own.store(p, block_norm_terms(p, shared), out, shared);
    results = shared;
  } else {
    largest = norm_singly(p, x, weights, out);
  }
  __syncthreads();
  if (p.tiles.halves != nullptr) store_tile_row(p.tiles, row, results, block_max(largest, scratch));
  if (p.rounded.q != nullptr) round_whole_row(p.rounded, row, results);
}

}  // namespace leasehold::device
