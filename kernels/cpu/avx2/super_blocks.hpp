/// Blocks of 256: their sub-blocks' scales and minima in registers, for eight rows of a group.
#pragma once

#include "kernels/cpu/avx2/strips.hpp"

namespace leasehold::avx2 {

/// Byte 4·row + i of register j is number 4j + i.
struct SubBlocks {
  __m256i scales[4];
  /// The factors of the sums of activations: the minima, or the scales for types with an offset,
  /// which is subtracted once per sub-block.
  __m256i factors[4];
};

/// The upper two bits of numbers 4·quad … 4·quad + 3 of each row, in bits 4 and 5 of its bytes.
/// `words` has 16 bits per row (IQ4_XS).
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256i upper_bits_of(__m256i words,
                                                                                  int quad) {
  const __m256i four = _mm256_and_si256(_mm256_srl_epi32(words, _mm_cvtsi32_si128(quad * 8)),
                                        _mm256_set1_epi32(255));
  const __m256i two = _mm256_or_si256(four, _mm256_slli_epi32(four, 12));
  const __m256i spread = _mm256_or_si256(two, _mm256_slli_epi32(two, 6));
  return _mm256_slli_epi32(_mm256_and_si256(spread, _mm256_set1_epi8(3)), 4);
}

/// Loads the numbers of half a block.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline SubBlocks load_sub_blocks(
    const std::byte* block, std::uint32_t half) {
  const std::byte* all = block + group_format(kType).sub_scales_at();
  const std::byte* numbers = all + half * kHalfPlane;
  SubBlocks sub;
  if constexpr (kType == TensorType::IQ4_XS) {
    const __m256i words = _mm256_cvtepu16_epi32(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(all + kPlaneBytes) + half));
    const __m256i zero = _mm256_setzero_si256();
    sub.scales[0] = _mm256_or_si256(codes_of<4, 0, 0>(numbers, zero), upper_bits_of(words, 0));
    sub.scales[1] = _mm256_or_si256(codes_of<4, 0, 1>(numbers, zero), upper_bits_of(words, 1));
    sub.scales[2] = sub.scales[3] = zero;
  } else if constexpr (group_format(kType).sub_scale_bits == 6)
    load_strip<4, 2>(numbers, numbers + 2 * std::size_t{kPlaneBytes}, 0, sub.scales);
  else
    load_strip<8, 0>(numbers, numbers, 0, sub.scales);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    if constexpr (kType == TensorType::Q3_K || kType == TensorType::IQ4_XS)
      sub.scales[i] = _mm256_sub_epi8(sub.scales[i], _mm256_set1_epi8(32));
    sub.factors[i] = sub.scales[i];
    if constexpr (kType == TensorType::Q2_K) {
      const __m256i four_bits = _mm256_set1_epi8(15);
      sub.factors[i] = _mm256_and_si256(shift_right<4>(sub.scales[i]), four_bits);
      sub.scales[i] = _mm256_and_si256(sub.scales[i], four_bits);
    }
  }
  if constexpr (kType == TensorType::Q4_K || kType == TensorType::Q5_K) {
    sub.factors[0] = sub.scales[2];
    sub.factors[1] = sub.scales[3];
  }
  return sub;
}

/// Numbers n and m of each row as 16 bits each. Precondition: n / 4 == m / 4.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256i two_numbers_of(
    const __m256i (&numbers)[4], std::uint32_t n, std::uint32_t m) {
  // A control byte above 127 gives zero. The shuffle moves the numbers to upper bytes, and the
  // shift moves them down with their sign.
  const __m256i control =
      _mm256_set1_epi32(static_cast<int>(0x00800080u | (n % 4) << 8 | (m % 4) << 24));
  const __m256i base = _mm256_setr_epi32(0, 0x04000400, 0x08000800, 0x0C000C00, 0, 0x04000400,
                                         0x08000800, 0x0C000C00);
  const __m256i spread = _mm256_shuffle_epi8(numbers[n / 4], _mm256_add_epi8(control, base));
  return _mm256_srai_epi16(spread, 8);
}

}  // namespace leasehold::avx2
