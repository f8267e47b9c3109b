/// The layouts and formulas are in kernels/quant/dequantize.hpp and super_blocks.hpp. Every q fits
/// an int8, so one function widens and scales every format from registers of 32 signed bytes.
#include "kernels/cpu/avx2/dequantize.hpp"

#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/avx2/lanes.hpp"
#include "kernels/quant/block_bytes.hpp"
#include "kernels/quant/code_values.hpp"
#include "kernels/quant/super_blocks.hpp"

namespace leasehold::avx2 {
namespace {

/// The scale and minimum that 16 elements share: x = scale·q - min.
struct Sixteen {
  float scale;
  float min = 0.0F;
};

[[gnu::target("avx2,fma,f16c")]] __m128i load16(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

[[gnu::target("avx2,fma,f16c")]] __m256i load32(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

/// Widening and conversion are exact. In formats with minima the product is exact, too.
[[gnu::target("avx2,fma,f16c")]] __m256 scaled(__m128i q, __m256 scale) {
  return _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)));
}

[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void scale_sixteen(__m128i q,
                                                                               float scale,
                                                                               float* out) {
  const __m256 scales = _mm256_set1_ps(scale);
  _mm256_storeu_ps(out, scaled(q, scales));
  _mm256_storeu_ps(out + kWidth, scaled(_mm_srli_si128(q, 8), scales));
}

[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void scale_sixteen(__m128i q,
                                                                               Sixteen common,
                                                                               float* out) {
  const __m256 scales = _mm256_set1_ps(common.scale);
  const __m256 mins = _mm256_set1_ps(common.min);
  _mm256_storeu_ps(out, _mm256_sub_ps(scaled(q, scales), mins));
  _mm256_storeu_ps(out + kWidth, _mm256_sub_ps(scaled(_mm_srli_si128(q, 8), scales), mins));
}

/// Scales 32 elements. Each half has its own scale: a float, or a Sixteen in formats with minima.
template <class Common>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void scale_thirty_two(__m256i q,
                                                                                  Common low,
                                                                                  Common high,
                                                                                  float* out) {
  scale_sixteen(_mm256_castsi256_si128(q), low, out);
  scale_sixteen(_mm256_extracti128_si256(q, 1), high, out + 16);
}

/// (bytes >> shift) & mask in every byte.
[[gnu::target("avx2,fma,f16c")]] __m256i bits_of(__m256i bytes, int shift, char mask) {
  return _mm256_and_si256(_mm256_srl_epi16(bytes, _mm_cvtsi32_si128(shift)),
                          _mm256_set1_epi8(mask));
}

/// Shifts what bits_of returned above the low `shift` bits and joins both.
[[gnu::target("avx2,fma,f16c")]] __m256i above(__m256i bits, int shift, __m256i low) {
  return _mm256_or_si256(_mm256_sll_epi16(bits, _mm_cvtsi32_si128(shift)), low);
}

[[gnu::target("avx2,fma,f16c")]] __m256i minus(__m256i q, char offset) {
  return _mm256_sub_epi8(q, _mm256_set1_epi8(offset));
}

// ---- blocks of 32

/// The low halves of 16 bytes hold elements 0 … 15, the high halves 16 … 31.
[[gnu::target("avx2,fma,f16c")]] __m256i four_bits(const std::byte* quants) {
  const __m128i pairs = load16(quants);
  const __m128i low_four = _mm_set1_epi8(15);
  return _mm256_set_m128i(_mm_and_si128(_mm_srli_epi16(pairs, 4), low_four),
                          _mm_and_si128(pairs, low_four));
}

/// The 32 fifth bits as bytes: byte i of the register receives the source byte that holds bit i.
[[gnu::target("avx2,fma,f16c")]] __m256i five_bits(const std::byte* high) {
  std::int32_t fifths;
  std::memcpy(&fifths, high, sizeof fifths);
  const __m256i source =
      _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
  const __m256i bit = _mm256_set1_epi64x(static_cast<std::int64_t>(0x8040201008040201ULL));
  const __m256i spread =
      _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(fifths), source), bit);
  const __m256i is_set = _mm256_cmpeq_epi8(spread, bit);
  return _mm256_or_si256(_mm256_and_si256(is_set, _mm256_set1_epi8(16)), four_bits(high + 4));
}

[[gnu::target("avx2,fma,f16c")]] void q8_0_block(const std::byte* block, float* out) {
  const float d = read_half(block);
  scale_thirty_two(load32(block + kHalfBytes), d, d, out);
}

[[gnu::target("avx2,fma,f16c")]] void q4_0_block(const std::byte* block, float* out) {
  const float d = read_half(block);
  scale_thirty_two(minus(four_bits(block + kHalfBytes), 8), d, d, out);
}

[[gnu::target("avx2,fma,f16c")]] void q4_1_block(const std::byte* block, float* out) {
  const Sixteen common{read_half(block), -read_half(block + kHalfBytes)};
  scale_thirty_two(four_bits(block + 2 * kHalfBytes), common, common, out);
}

/// The values of a table's codes.
template <CodeTable kTable>
[[gnu::target("avx2,fma,f16c")]] __m256i values_of(__m256i codes) {
  static constexpr CodeValues kValues = code_values(kTable);
  const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kValues.of));
  constexpr std::uint8_t kOffset = kTable == CodeTable::Iq4 ? kIq4Offset : kMxfp4Offset;
  return minus(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), codes),
               static_cast<char>(kOffset));
}

[[gnu::target("avx2,fma,f16c")]] void iq4_nl_block(const std::byte* block, float* out) {
  const float d = read_half(block);
  scale_thirty_two(values_of<CodeTable::Iq4>(four_bits(block + kHalfBytes)), d, d, out);
}

[[gnu::target("avx2,fma,f16c")]] void mxfp4_block(const std::byte* block, float* out) {
  const float d = half_power_of_two(static_cast<std::uint32_t>(read_byte(block)));
  scale_thirty_two(values_of<CodeTable::Mxfp4>(four_bits(block + 1)), d, d, out);
}

[[gnu::target("avx2,fma,f16c")]] void iq4_xs_block(const std::byte* block, float* out) {
  const float d = read_half(block);
  for (std::size_t g = 0; g < 8; ++g) {
    const float scale = d * static_cast<float>(iq4_xs_scale(block, g));
    const std::byte* quants = block + Iq4XsFields::kQuants + g * 16;
    scale_thirty_two(values_of<CodeTable::Iq4>(four_bits(quants)), scale, scale, out + 32 * g);
  }
}

[[gnu::target("avx2,fma,f16c")]] void q5_0_block(const std::byte* block, float* out) {
  const float d = read_half(block);
  scale_thirty_two(minus(five_bits(block + kHalfBytes), 16), d, d, out);
}

[[gnu::target("avx2,fma,f16c")]] void q5_1_block(const std::byte* block, float* out) {
  const Sixteen common{read_half(block), -read_half(block + kHalfBytes)};
  scale_thirty_two(five_bits(block + 2 * kHalfBytes), common, common, out);
}

// ---- blocks of 256, 32 elements at a time: group g holds elements 32g … 32g + 31

[[gnu::target("avx2,fma,f16c")]] __m256i two_bits(const std::byte* quants, std::size_t group) {
  return bits_of(load32(quants + group / 4 * 32), static_cast<int>(2 * (group % 4)), 3);
}

[[gnu::target("avx2,fma,f16c")]] void q2_k_block(const std::byte* block, float* out) {
  using Fields = Q2KFields;
  const float d = read_half(block + Fields::kD);
  const float dmin = read_half(block + Fields::kDmin);
  const auto common = [&](std::size_t sub_block) {
    const int both = read_byte(block + Fields::kScales + sub_block);
    return Sixteen{d * static_cast<float>(both & 15), dmin * static_cast<float>(both >> 4)};
  };
  for (std::size_t g = 0; g < 8; ++g)
    scale_thirty_two(two_bits(block + Fields::kQuants, g), common(2 * g), common(2 * g + 1),
                     out + 32 * g);
}

[[gnu::target("avx2,fma,f16c")]] void q3_k_block(const std::byte* block, float* out) {
  using Fields = Q3KFields;
  const float d = read_half(block + Fields::kD);
  const __m256i high = load32(block + Fields::kHigh);
  const auto scale = [&](std::size_t sub_block) {
    return d * static_cast<float>(q3_scale(block + Fields::kScales, sub_block));
  };
  for (std::size_t g = 0; g < 8; ++g) {
    const __m256i third = bits_of(high, static_cast<int>(g), 1);
    const __m256i q = minus(above(third, 2, two_bits(block + Fields::kQuants, g)), 4);
    scale_thirty_two(q, scale(2 * g), scale(2 * g + 1), out + 32 * g);
  }
}

/// The codes of group g, in the 32 bytes from 32·(g/2) on: the low halves if g is even, the high
/// halves if it is odd.
[[gnu::target("avx2,fma,f16c")]] __m256i four_bits_of_group(const std::byte* quants,
                                                            std::size_t group) {
  return bits_of(load32(quants + group / 2 * 32), group % 2 == 0 ? 0 : 4, 15);
}

[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline Sixteen common_of(
    const std::byte* scales, std::size_t sub_block, float d, float dmin) {
  const ScaleAndMin sub = q4_scale_and_min(scales, sub_block);
  return {d * static_cast<float>(sub.scale), dmin * static_cast<float>(sub.min)};
}

[[gnu::target("avx2,fma,f16c")]] void q4_k_block(const std::byte* block, float* out) {
  using Fields = Q4KFields;
  const float d = read_half(block + Fields::kD);
  const float dmin = read_half(block + Fields::kDmin);
  for (std::size_t g = 0; g < 8; ++g) {
    const Sixteen common = common_of(block + Fields::kScales, g, d, dmin);
    scale_thirty_two(four_bits_of_group(block + Fields::kQuants, g), common, common, out + 32 * g);
  }
}

[[gnu::target("avx2,fma,f16c")]] void q5_k_block(const std::byte* block, float* out) {
  using Fields = Q5KFields;
  const float d = read_half(block + Fields::kD);
  const float dmin = read_half(block + Fields::kDmin);
  const __m256i high = load32(block + Fields::kHigh);
  for (std::size_t g = 0; g < 8; ++g) {
    const Sixteen common = common_of(block + Fields::kScales, g, d, dmin);
    const __m256i fifth = bits_of(high, static_cast<int>(g), 1);
    scale_thirty_two(above(fifth, 4, four_bits_of_group(block + Fields::kQuants, g)), common,
                     common, out + 32 * g);
  }
}

[[gnu::target("avx2,fma,f16c")]] void q6_k_block(const std::byte* block, float* out) {
  using Fields = Q6KFields;
  const float d = read_half(block + Fields::kD);
  const auto scale = [&](std::size_t sub_block) {
    return d * static_cast<float>(read_int8(block + Fields::kScales + sub_block));
  };
  for (std::size_t g = 0; g < 8; ++g) {
    const __m256i bytes = load32(block + Fields::kQuants + g / 4 * 64 + g % 2 * 32);
    const __m256i low = bits_of(bytes, g % 4 < 2 ? 0 : 4, 15);
    const __m256i q = minus(above(two_bits(block + Fields::kHigh, g), 4, low), 32);
    scale_thirty_two(q, scale(2 * g), scale(2 * g + 1), out + 32 * g);
  }
}

// ---- rows

[[gnu::target("avx2,fma,f16c")]] void f16_row(const std::byte* source, float* out, std::size_t n) {
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(load16(source + i * kHalfBytes)));
  for (; i < n; ++i) out[i] = read_half(source + i * kHalfBytes);
}

[[gnu::target("avx2,fma,f16c")]] void bf16_row(const std::byte* source, float* out, std::size_t n) {
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const __m256i upper = _mm256_cvtepu16_epi32(load16(source + i * kHalfBytes));
    _mm256_storeu_ps(out + i, _mm256_castsi256_ps(_mm256_slli_epi32(upper, 16)));
  }
  for (; i < n; ++i) out[i] = read_bfloat(source + i * kHalfBytes);
}

template <void (*kBlockOf)(const std::byte*, float*)>
[[gnu::target("avx2,fma,f16c")]] void each_block(BlockShape shape, const std::byte* source,
                                                 float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; i += shape.elements, source += shape.size_bytes)
    kBlockOf(source, out + i);
}

}  // namespace

void dequantize_row(TensorType type, const std::byte* source, float* out, std::size_t n) {
  const BlockShape shape = block_shape(type);
  switch (type) {
    case TensorType::F32:
      std::memcpy(out, source, n * sizeof(float));
      return;
    case TensorType::F16:
      return f16_row(source, out, n);
    case TensorType::BF16:
      return bf16_row(source, out, n);
    case TensorType::Q8_0:
      return each_block<q8_0_block>(shape, source, out, n);
    case TensorType::Q4_0:
      return each_block<q4_0_block>(shape, source, out, n);
    case TensorType::Q4_1:
      return each_block<q4_1_block>(shape, source, out, n);
    case TensorType::Q5_0:
      return each_block<q5_0_block>(shape, source, out, n);
    case TensorType::Q5_1:
      return each_block<q5_1_block>(shape, source, out, n);
    case TensorType::Q2_K:
      return each_block<q2_k_block>(shape, source, out, n);
    case TensorType::Q3_K:
      return each_block<q3_k_block>(shape, source, out, n);
    case TensorType::Q4_K:
      return each_block<q4_k_block>(shape, source, out, n);
    case TensorType::Q5_K:
      return each_block<q5_k_block>(shape, source, out, n);
    case TensorType::Q6_K:
      return each_block<q6_k_block>(shape, source, out, n);
    case TensorType::IQ4_NL:
      return each_block<iq4_nl_block>(shape, source, out, n);
    case TensorType::IQ4_XS:
      return each_block<iq4_xs_block>(shape, source, out, n);
    case TensorType::MXFP4:
      return each_block<mxfp4_block>(shape, source, out, n);
  }
}

}  // namespace leasehold::avx2
