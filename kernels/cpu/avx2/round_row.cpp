#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/avx2/int8.hpp"
#include "kernels/cpu/avx2/strips.hpp"
#include "kernels/numerics/kv_q8.hpp"

namespace leasehold::avx2 {
namespace {

[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline std::uint32_t largest_of(
    __m256i numbers) {
  __m128i four =
      _mm_max_epu32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256(numbers, 1));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4E));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0xB1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(four));
}

/// The bits of the largest |x| of n elements, a multiple of 8.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline std::uint32_t largest_magnitude(
    const float* x, std::uint32_t n) {
  const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
  __m256i largest = _mm256_setzero_si256();
  for (std::uint32_t i = 0; i < n; i += 8)
    largest = _mm256_max_epu32(largest, _mm256_and_si256(load_integers(x + i), magnitude));
  return largest_of(largest);
}

[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline std::int16_t sum_of(__m256i numbers) {
  __m128i four =
      _mm_add_epi32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256(numbers, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xB1));
  return static_cast<std::int16_t>(_mm_cvtsi128_si32(four));
}

/// Packing works in halves of a register, so the last permutation restores the order.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void store_bytes(
    const __m256i (&part)[4], std::int8_t* to) {
  const __m256i low = _mm256_packs_epi32(part[0], part[1]);
  const __m256i high = _mm256_packs_epi32(part[2], part[3]);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i packed = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), packed);
}

[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256i nearest_integers(__m256 x) {
  return _mm256_cvtps_epi32(_mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/// Rounds 32 elements of a block whose scale is a positive number.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void round_two_strips(
    const float* x, float scale, std::int8_t* q, std::int16_t* sums) {
  const __m256 d = _mm256_set1_ps(scale);
  __m256i part[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    part[i] = nearest_integers(_mm256_div_ps(_mm256_loadu_ps(x + i * 8), d));
  sums[0] = sum_of(_mm256_add_epi32(part[0], part[1]));
  sums[1] = sum_of(_mm256_add_epi32(part[2], part[3]));
  store_bytes(part, q);
}

/// Like round_two_strips, with limited codes and without sums.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void round_kv_block(const float* x,
                                                                                float scale,
                                                                                std::int8_t* q) {
  const __m256 d = _mm256_set1_ps(scale);
  const __m256 most = _mm256_set1_ps(kKvLargestCode);
  const __m256 least = _mm256_set1_ps(-kKvLargestCode);
  __m256i part[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m256 ratio = _mm256_div_ps(_mm256_loadu_ps(x + i * 8), d);
    part[i] = nearest_integers(_mm256_min_ps(_mm256_max_ps(ratio, least), most));
  }
  store_bytes(part, q);
}

}  // namespace

void round_row(const float* x, std::size_t n, std::uint32_t block, const RoundedRowBuffer& out) {
  for (std::size_t begin = 0; begin < n; begin += block) {
    const float d = int8_scale(largest_magnitude(x + begin, block));
    out.scale[begin / block] = d;
    for (std::size_t i = begin; i < begin + block; i += kMinInt8Block) {
      std::int16_t* sums = out.sums + i / kInt8Strip;
      if (d > 0) {
        round_two_strips(x + i, d, out.q + i, sums);
      } else {
        std::memset(out.q + i, 0, kMinInt8Block);
        sums[0] = sums[1] = 0;
      }
    }
  }
}

void round_kv(const float* values, std::size_t n, std::int8_t* q, Half* scales) {
  for (std::size_t begin = 0; begin < n; begin += kMinInt8Block) {
    const Half scale = kv_scale(largest_magnitude(values + begin, kMinInt8Block));
    scales[begin / kMinInt8Block] = scale;
    const float d = f32_from_f16(scale);
    if (d > 0)
      round_kv_block(values + begin, d, q + begin);
    else
      std::memset(q + begin, 0, kMinInt8Block);
  }
}

}  // namespace leasehold::avx2
