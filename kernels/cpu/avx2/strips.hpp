/// The loads of int8 dots for half a group. The codes of sixteen elements of eight rows are half a
/// *strip* and fill four registers (kernels/quant/group_format.hpp). Pointers to codes point to the
/// half's first byte of a plane.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "kernels/quant/group_format.hpp"

namespace leasehold::avx2 {

inline constexpr std::size_t kHalfPlane = kPlaneBytes / 2;
inline constexpr std::uint32_t kHalfGroup = kGroupRows / 2;

/// Broadcasts two or four elements of a rounded row to all rows of a group.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256i broadcast_word(
    const void* from) {
  std::int32_t word;
  std::memcpy(&word, from, sizeof word);
  return _mm256_set1_epi32(word);
}

/// The scales or minima of half a group.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 load_halves(
    const std::byte* from, std::uint32_t half) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + half));
}

[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256i load_integers(
    const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

/// Shifts each byte's bits to the right, or to the left if kShift is negative. Bits of other bytes
/// come in; the caller removes them with a mask.
template <int kShift>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256i shift_right(__m256i plane) {
  if constexpr (kShift > 0) return _mm256_srli_epi16(plane, kShift);
  if constexpr (kShift < 0) return _mm256_slli_epi16(plane, -kShift);
  return plane;
}

/// The codes of four elements per row of a strip. `low` points to the strip's planes of kLow bits.
/// `high` has the strip's upper kHigh bits in the lowest places of each byte.
template <int kLow, int kHigh, int kQuad>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256i codes_of(const std::byte* low,
                                                                             __m256i high) {
  constexpr int kPerPlane = 8 / kLow;
  const __m256i plane = load_integers(low + kQuad / kPerPlane * kPlaneBytes);
  if constexpr (kLow == 8) return plane;
  const __m256i codes = _mm256_and_si256(shift_right<kQuad % kPerPlane * kLow>(plane),
                                         _mm256_set1_epi8(static_cast<char>((1 << kLow) - 1)));
  if constexpr (kHigh == 0) return codes;
  const __m256i mask = _mm256_set1_epi8(((1 << kHigh) - 1) << kLow);
  return _mm256_or_si256(codes, _mm256_and_si256(shift_right<kQuad * kHigh - kLow>(high), mask));
}

/// Loads the argument `high` of codes_of: the upper bits of a strip, or zero if kHigh is 0.
template <int kHigh>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256i load_upper(
    const std::byte* high, std::uint32_t strip) {
  if constexpr (kHigh == 2) return load_integers(high + strip * kPlaneBytes);
  if constexpr (kHigh == 1)  // a plane has two strips
    return _mm256_srl_epi16(load_integers(high + strip / 2 * kPlaneBytes),
                            _mm_cvtsi32_si128(static_cast<int>(strip % 2 * 4)));
  return _mm256_setzero_si256();
}

/// Loads strip `strip` of planes with kLow and kHigh bits per element.
template <int kLow, int kHigh>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void load_strip(const std::byte* low,
                                                                            const std::byte* high,
                                                                            std::uint32_t strip,
                                                                            __m256i (&codes)[4]) {
  low += strip * (kLow / 2) * kPlaneBytes;
  const __m256i upper = load_upper<kHigh>(high, strip);
  codes[0] = codes_of<kLow, kHigh, 0>(low, upper);
  codes[1] = codes_of<kLow, kHigh, 1>(low, upper);
  codes[2] = codes_of<kLow, kHigh, 2>(low, upper);
  codes[3] = codes_of<kLow, kHigh, 3>(low, upper);
}

[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256i entries_of(
    const CodeValues& values, __m256i codes) {
  const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values.of));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), codes);
}

/// Replaces codes by the entries of the type's table, if it has one.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256i through_table(__m256i codes) {
  constexpr CodeTable kTable = group_format(kType).table;
  if constexpr (kTable == CodeTable::None) return codes;
  static constexpr CodeValues kValues = code_values(kTable);
  return entries_of(kValues, codes);
}

/// Loads the codes of strip `strip` of half a block. `half_block` is the half's first byte.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void load_codes(
    const std::byte* half_block, std::uint32_t strip, __m256i (&codes)[4]) {
  constexpr GroupFormat kFormat = group_format(kType);
  load_strip<kFormat.low_bits, kFormat.high_bits>(half_block + kFormat.low_at(),
                                                  half_block + kFormat.high_at(), strip, codes);
#pragma GCC unroll 4
  for (__m256i& quad : codes) quad = through_table<kType>(quad);
}

/// The elements of a table with wide codes as signed bytes, and their magnitudes.
struct SignedValues {
  CodeValues elements;
  CodeValues magnitudes;
};
constexpr SignedValues signed_values(CodeTable table) {
  SignedValues values{code_values(table), code_values(table)};
  for (std::uint8_t& value : values.elements.of) value ^= 128;
  for (std::uint8_t& value : values.magnitudes.of)
    value = static_cast<std::uint8_t>(value < 128 ? 128 - value : value - 128);
  return values;
}

/// Signed elements and their magnitudes.
struct SignedElements {
  __m256i elements;
  __m256i magnitudes;
};

/// The elements of codes of a type with wide codes.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline SignedElements signed_elements(
    __m256i codes) {
  if constexpr (group_format(kType).table == CodeTable::None) {
    const __m256i elements = _mm256_xor_si256(codes, _mm256_set1_epi8(static_cast<char>(0x80)));
    return {elements, _mm256_abs_epi8(elements)};
  }
  static constexpr SignedValues kValues = signed_values(group_format(kType).table);
  return {entries_of(kValues.elements, codes), entries_of(kValues.magnitudes, codes)};
}

/// The scales of half a block.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 load_scales(
    const std::byte* block, std::uint32_t half) {
  if constexpr (group_format(kType).scale_bytes == 2) return load_halves(block, half);
  // half_power_of_two: (e - 1) << 23, and 2^21 << e for the two smallest exponents.
  const __m256i e = _mm256_cvtepu8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(block + half * kHalfGroup)));
  const __m256i two = _mm256_set1_epi32(2);
  const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
  const __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
  return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, tiny, _mm256_cmpgt_epi32(two, e)));
}

}  // namespace leasehold::avx2
