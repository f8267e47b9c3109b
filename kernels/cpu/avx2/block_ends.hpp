/// The end of a block: its integers become floats and are added to a chunk of half a group and one
/// row of x. AVX2 and AVX-VNNI use these functions.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/avx2/strips.hpp"
#include "kernels/quant/group_format.hpp"

namespace leasehold::avx2 {

/// The factors of half a block, one per matrix row.
struct HalfFactors {
  __m256 scales;
  __m256 minima;  ///< Zero for types without a minimum.
};

template <TensorType kType>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline HalfFactors load_factors(
    const std::byte* block, std::uint32_t half) {
  HalfFactors factors{.scales = load_scales<kType>(block, half), .minima = _mm256_setzero_ps()};
  if constexpr (group_format(kType).has_min)
    factors.minima = load_halves(block + kGroupRows * 2, half);
  return factors;
}

/// Adds the products of block b of 32 to the chunk.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void end_block(
    const HalfFactors& factors, const RoundedRow& x, std::uint32_t b, __m256i products,
    __m256& chunk) {
  const __m256 d = _mm256_set1_ps(x.scale[b]);
  chunk = _mm256_fmadd_ps(_mm256_mul_ps(factors.scales, d), _mm256_cvtepi32_ps(products), chunk);
  if constexpr (group_format(kType).has_min) {
    const __m256i sum = _mm256_madd_epi16(broadcast_word(x.sums + b * 2), _mm256_set1_epi16(1));
    chunk = _mm256_fmadd_ps(_mm256_mul_ps(factors.minima, d), _mm256_cvtepi32_ps(sum), chunk);
  }
}

/// Adds a block of 256 to the chunk. `x_scale` is the scale of x in this block. `sums` are the sums
/// of activations times SubBlocks::factors. `offset` is what the products still include.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void end_super_block(
    const HalfFactors& factors, float x_scale, __m256i products, __m256i sums, __m256& chunk,
    std::int32_t offset = group_format(kType).offset) {
  constexpr GroupFormat kFormat = group_format(kType);
  const __m256 d = _mm256_set1_ps(x_scale);
  const __m256i offsets = _mm256_mullo_epi32(sums, _mm256_set1_epi32(offset));
  const __m256i product = _mm256_sub_epi32(products, offsets);
  chunk = _mm256_fmadd_ps(_mm256_mul_ps(factors.scales, d), _mm256_cvtepi32_ps(product), chunk);
  if constexpr (kFormat.has_min)
    chunk = _mm256_fnmadd_ps(_mm256_mul_ps(factors.minima, d), _mm256_cvtepi32_ps(sums), chunk);
}

}  // namespace leasehold::avx2
