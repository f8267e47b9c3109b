/// The codes of a group's elements in registers. The codes of sixteen elements of sixteen rows are
/// a *strip* and fill four registers (kernels/quant/group_format.hpp).
#pragma once

#include <immintrin.h>

#include "kernels/quant/group_format.hpp"

namespace leasehold::avx512 {

/// Shifts each byte's bits to the right, or to the left if kShift is negative. Bits of other bytes
/// come in; the caller removes them with a mask.
template <int kShift>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline __m512i
shift_right(__m512i plane) {
  if constexpr (kShift > 0) return _mm512_srli_epi16(plane, kShift);
  if constexpr (kShift < 0) return _mm512_slli_epi16(plane, -kShift);
  return plane;
}

/// The codes of four elements per row of a strip. `low` points to the strip's planes of kLow bits.
/// `high` has the strip's upper kHigh bits in the lowest places of each byte.
template <int kLow, int kHigh, int kQuad>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline __m512i
codes_of(const std::byte* low, __m512i high) {
  constexpr int kPerPlane = 8 / kLow;
  const __m512i plane = _mm512_loadu_si512(low + kQuad / kPerPlane * kPlaneBytes);
  if constexpr (kLow == 8) return plane;
  const __m512i codes = _mm512_and_si512(shift_right<kQuad % kPerPlane * kLow>(plane),
                                         _mm512_set1_epi8(static_cast<char>((1 << kLow) - 1)));
  if constexpr (kHigh == 0) return codes;
  const __m512i mask = _mm512_set1_epi8(((1 << kHigh) - 1) << kLow);
  return _mm512_or_si512(codes, _mm512_and_si512(shift_right<kQuad * kHigh - kLow>(high), mask));
}

/// Loads strip `strip` of planes with kLow and kHigh bits per element.
template <int kLow, int kHigh>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
load_strip(const std::byte* low, const std::byte* high, std::uint32_t strip, __m512i (&codes)[4]) {
  low += strip * (kLow / 2) * kPlaneBytes;
  __m512i upper = _mm512_setzero_si512();
  if constexpr (kHigh == 2) upper = _mm512_loadu_si512(high + strip * kPlaneBytes);
  if constexpr (kHigh == 1)  // a plane has two strips
    upper = _mm512_srl_epi16(_mm512_loadu_si512(high + strip / 2 * kPlaneBytes),
                             _mm_cvtsi32_si128(static_cast<int>(strip % 2 * 4)));
  codes[0] = codes_of<kLow, kHigh, 0>(low, upper);
  codes[1] = codes_of<kLow, kHigh, 1>(low, upper);
  codes[2] = codes_of<kLow, kHigh, 2>(low, upper);
  codes[3] = codes_of<kLow, kHigh, 3>(low, upper);
}

/// Loads the codes of strip `strip` of a block. Codes of a table are replaced by its entries.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
load_block_codes(const std::byte* block, std::uint32_t strip, __m512i (&codes)[4]) {
  constexpr GroupFormat kFormat = group_format(kType);
  load_strip<kFormat.low_bits, kFormat.high_bits>(block + kFormat.low_at(),
                                                  block + kFormat.high_at(), strip, codes);
  if constexpr (kFormat.table != CodeTable::None) {
    static constexpr CodeValues kValues = code_values(kFormat.table);
    const __m512i table = _mm512_maskz_broadcast_i32x4(
        0xFFFF, _mm_loadu_si128(reinterpret_cast<const __m128i*>(kValues.of)));
#pragma GCC unroll 4
    for (int quad = 0; quad < 4; ++quad) codes[quad] = _mm512_shuffle_epi8(table, codes[quad]);
  }
}

}  // namespace leasehold::avx512
