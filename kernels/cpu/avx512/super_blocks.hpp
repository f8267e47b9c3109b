/// Blocks of 256: their sub-blocks' scales and minima in registers.
#pragma once

#include "kernels/cpu/avx512/strips.hpp"

namespace leasehold::avx512 {

/// Per row of a group, one byte for each of the sixteen strips or eight pairs of strips: byte
/// 4·row + i of register j is number 4j + i.
struct SubBlocks {
  __m512i scales[4];
  __m512i minima[4];  ///< Only for types with minima.
};

/// The upper two bits of numbers 4·kQuad … 4·kQuad + 3 of each row, in bits 4 and 5 of its bytes.
/// `words` has 16 bits per row (IQ4_XS).
template <int kQuad>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline __m512i
upper_bits_of(__m512i words) {
  const __m512i four =
      _mm512_and_si512(_mm512_maskz_srli_epi32(0xFFFF, words, kQuad * 8), _mm512_set1_epi32(255));
  const __m512i two = _mm512_or_si512(four, _mm512_maskz_slli_epi32(0xFFFF, four, 12));
  const __m512i spread = _mm512_or_si512(two, _mm512_maskz_slli_epi32(0xFFFF, two, 6));
  return _mm512_maskz_slli_epi32(0xFFFF, _mm512_and_si512(spread, _mm512_set1_epi8(3)), 4);
}

template <TensorType kType>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline SubBlocks
load_sub_blocks(const std::byte* block) {
  constexpr GroupFormat kFormat = group_format(kType);
  const std::byte* numbers = block + kFormat.sub_scales_at();
  SubBlocks sub;
  if constexpr (kType == TensorType::IQ4_XS) {
    const __m512i words = _mm512_maskz_cvtepu16_epi32(
        0xFFFF, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(numbers + kPlaneBytes)));
    const __m512i zero = _mm512_setzero_si512();
    sub.scales[0] = _mm512_or_si512(codes_of<4, 0, 0>(numbers, zero), upper_bits_of<0>(words));
    sub.scales[1] = _mm512_or_si512(codes_of<4, 0, 1>(numbers, zero), upper_bits_of<1>(words));
    sub.scales[2] = sub.scales[3] = zero;
  } else if constexpr (kFormat.sub_scale_bits == 6)
    load_strip<4, 2>(numbers, numbers + 2 * std::size_t{kPlaneBytes}, 0, sub.scales);
  else
    load_strip<8, 0>(numbers, numbers, 0, sub.scales);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    if constexpr (kType == TensorType::Q3_K || kType == TensorType::IQ4_XS)
      sub.scales[i] = _mm512_sub_epi8(sub.scales[i], _mm512_set1_epi8(32));
    if constexpr (kType == TensorType::Q2_K) {
      const __m512i four_bits = _mm512_set1_epi8(15);
      sub.minima[i] = _mm512_and_si512(shift_right<4>(sub.scales[i]), four_bits);
      sub.scales[i] = _mm512_and_si512(sub.scales[i], four_bits);
    }
  }
  if constexpr (kType == TensorType::Q4_K || kType == TensorType::Q5_K) {
    sub.minima[0] = sub.scales[2];
    sub.minima[1] = sub.scales[3];
  }
  return sub;
}

/// Number n of each row, as 32 bits. The masks here and below select all lanes: GCC 12 reports
/// uninitialised values inside its intrinsics without a mask.
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline __m512i
number_of(const __m512i (&numbers)[4], std::uint32_t n) {
  const __m128i places = _mm_cvtsi32_si128(static_cast<int>(24 - n % 4 * 8));
  const __m512i upper = _mm512_maskz_sll_epi32(0xFFFF, numbers[n / 4], places);
  return _mm512_maskz_srai_epi32(0xFFFF, upper, 24);
}

/// Numbers n and m of each row as 16 bits each. Precondition: n / 4 == m / 4.
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline __m512i
two_numbers_of(const __m512i (&numbers)[4], std::uint32_t n, std::uint32_t m) {
  // A control byte above 127 gives zero. The shuffle moves the numbers to upper bytes, and the
  // shift moves them down with their sign.
  const __m512i control =
      _mm512_set1_epi32(static_cast<int>(0x00800080u | (n % 4) << 8 | (m % 4) << 24));
  const __m512i base =
      _mm512_maskz_broadcast_i32x4(0xFFFF, _mm_setr_epi32(0, 0x04000400, 0x08000800, 0x0C000C00));
  const __m512i spread = _mm512_shuffle_epi8(numbers[n / 4], _mm512_add_epi8(control, base));
  return _mm512_srai_epi16(spread, 8);
}

}  // namespace leasehold::avx512
