#include "kernels/cpu/avx512/activations.hpp"

#include "kernels/cpu/avx2/int8.hpp"
#include "kernels/cpu/avx2/rows.hpp"
#include "kernels/cpu/avx512/fold.hpp"
#include "kernels/cpu/avx512/lanes.hpp"
#include "kernels/quant/row_group.hpp"

namespace leasehold::avx512 {
namespace {

/// Elements that are rounded at once: eight strips, whose sums fold together.
constexpr std::uint32_t kStripsAtOnce = 8;
constexpr std::uint32_t kElementsAtOnce = kStripsAtOnce * kInt8Strip;
/// Blocks of 32 that are rounded at once: one per quarter of a register.
constexpr std::uint32_t kBlocksAtOnce = kElementsAtOnce / kMinInt8Block;

/// Per lane, the bits of the larger |x| of a strip and the next strip. Bits order like numbers.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512i larger_magnitudes(
    const float* x) {
  const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
  return _mm512_maskz_max_epu32(0xFFFF, _mm512_and_si512(_mm512_loadu_si512(x), magnitude),
                                _mm512_and_si512(_mm512_loadu_si512(x + kInt8Strip), magnitude));
}

/// Reduces pairs of quarters of a, and of b, to their larger lanes. The result has two quarters of
/// a, then two of b.
template <int kLow, int kHigh>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512i largest_quarters(
    __m512i a, __m512i b) {
  return _mm512_maskz_max_epu32(0xFFFF, _mm512_maskz_shuffle_i32x4(0xFFFF, a, b, kLow),
                                _mm512_maskz_shuffle_i32x4(0xFFFF, a, b, kHigh));
}

/// The largest lane of each quarter, in all lanes of the quarter.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512i largest_of_quarters(
    __m512i lanes) {
  lanes = _mm512_maskz_max_epu32(0xFFFF, lanes,
                                 _mm512_maskz_shuffle_epi32(0xFFFF, lanes, _MM_PERM_BADC));
  return _mm512_maskz_max_epu32(0xFFFF, lanes,
                                _mm512_maskz_shuffle_epi32(0xFFFF, lanes, _MM_PERM_CDAB));
}

/// int8_scale of each lane.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512 scales_of(
    __m512i largest_bits) {
  const __m512 largest = _mm512_castsi512_ps(largest_bits);
  const __mmask16 is_small = _mm512_cmp_ps_mask(largest, _mm512_set1_ps(0x1p-119F), _CMP_LT_OQ);
  const __mmask16 is_finite = _mm512_cmplt_epu32_mask(largest_bits, _mm512_set1_epi32(0x7F800000));
  const __m512 scales =
      _mm512_maskz_div_ps(static_cast<__mmask16>(~is_small), largest, _mm512_set1_ps(127.0F));
  return _mm512_mask_mov_ps(_mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000)), is_finite, scales);
}

/// Returns the codes of a strip as floats, 0 unless the scale is a positive number. `scale` has the
/// strip's scale in every lane.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512 round_strip(
    const float* x, __m512 scale) {
  const __mmask16 is_positive = _mm512_cmp_ps_mask(scale, _mm512_setzero_ps(), _CMP_GT_OQ);
  return _mm512_maskz_roundscale_ps(is_positive, _mm512_div_ps(_mm512_loadu_ps(x), scale),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/// Stores eight strips of codes and their sums, which are exact as floats.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void store_strips(
    const __m512 (&codes)[kStripsAtOnce], std::int8_t* q, std::int16_t* sums) {
#pragma GCC unroll 8
  for (std::uint32_t s = 0; s < kStripsAtOnce; ++s)
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(q + s * kInt8Strip),
        _mm512_maskz_cvtepi32_epi8(0xFFFF, _mm512_maskz_cvtps_epi32(0xFFFF, codes[s])));
  const __m256i eight = _mm256_cvtps_epi32(fold_eight(codes));
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(sums),
      _mm_packs_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1)));
}

/// Rounds four blocks of 32.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void round_four_blocks(
    const float* x, std::int8_t* q, float* scales, std::int16_t* sums) {
  const __m512i low =
      largest_quarters<0x44, 0xEE>(larger_magnitudes(x), larger_magnitudes(x + kMinInt8Block));
  const __m512i high = largest_quarters<0x44, 0xEE>(larger_magnitudes(x + 2 * kMinInt8Block),
                                                    larger_magnitudes(x + 3 * kMinInt8Block));
  const __m512 scale = scales_of(largest_of_quarters(largest_quarters<0x88, 0xDD>(low, high)));
  const __m512i first_of_quarters =
      _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0);
  _mm_storeu_ps(scales, _mm512_castps512_ps128(
                            _mm512_maskz_permutexvar_ps(0xFFFF, first_of_quarters, scale)));
  const __m512 of_block[kBlocksAtOnce] = {_mm512_maskz_shuffle_f32x4(0xFFFF, scale, scale, 0x00),
                                          _mm512_maskz_shuffle_f32x4(0xFFFF, scale, scale, 0x55),
                                          _mm512_maskz_shuffle_f32x4(0xFFFF, scale, scale, 0xAA),
                                          _mm512_maskz_shuffle_f32x4(0xFFFF, scale, scale, 0xFF)};
  __m512 codes[kStripsAtOnce];
#pragma GCC unroll 8
  for (std::uint32_t s = 0; s < kStripsAtOnce; ++s)
    codes[s] = round_strip(x + s * kInt8Strip, of_block[s / 2]);
  store_strips(codes, q, sums);
}

/// Rounds a block of a multiple of kElementsAtOnce. Returns its scale.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline float round_large_block(
    const float* x, std::uint32_t block, std::int8_t* q, std::int16_t* sums) {
  __m512i lanes = _mm512_setzero_si512();
  for (std::uint32_t i = 0; i < block; i += kMinInt8Block)
    lanes = _mm512_maskz_max_epu32(0xFFFF, lanes, larger_magnitudes(x + i));
  const __m512i halves = largest_quarters<0x44, 0xEE>(lanes, lanes);
  const __m512 scale = scales_of(largest_of_quarters(largest_quarters<0x88, 0xDD>(halves, halves)));
  for (std::uint32_t i = 0; i < block; i += kElementsAtOnce) {
    __m512 codes[kStripsAtOnce];
#pragma GCC unroll 8
    for (std::uint32_t s = 0; s < kStripsAtOnce; ++s)
      codes[s] = round_strip(x + i + s * kInt8Strip, scale);
    store_strips(codes, q + i, sums + i / kInt8Strip);
  }
  return _mm512_cvtss_f32(scale);
}

/// Like round_row, for blocks of a multiple of kElementsAtOnce, or for four blocks of 32 at a time.
/// Returns how many elements are rounded.
[[gnu::target("avx512f,avx512dq,avx2,fma")]] std::size_t round_most(const float* x, std::size_t n,
                                                                    std::uint32_t block,
                                                                    const RoundedRowBuffer& out) {
  std::size_t i = 0;
  if (block == kMinInt8Block)
    for (; i + kElementsAtOnce <= n; i += kElementsAtOnce)
      round_four_blocks(x + i, out.q + i, out.scale + i / kMinInt8Block, out.sums + i / kInt8Strip);
  else if (block % kElementsAtOnce == 0)
    for (; i < n; i += block)
      out.scale[i / block] = round_large_block(x + i, block, out.q + i, out.sums + i / kInt8Strip);
  return i;
}

/// gate = silu(gate) * up, for whole registers. Returns how many elements are done.
[[gnu::target("avx512f,avx512dq,avx2,fma")]] std::size_t gate_registers(float* gate,
                                                                        const float* up,
                                                                        std::size_t n) {
  const __m512 one = _mm512_set1_ps(1.0F);
  const __m512i sign = _mm512_set1_epi32(INT32_MIN);
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const __m512 x = _mm512_loadu_ps(gate + i);
    const __m512 negative = _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(x), sign));
    const __m512 silu_of = _mm512_div_ps(x, _mm512_add_ps(one, exp16(negative)));
    _mm512_storeu_ps(gate + i, _mm512_mul_ps(silu_of, _mm512_loadu_ps(up + i)));
  }
  return i;
}

}  // namespace

void round_row(const float* x, std::size_t n, std::uint32_t block, const RoundedRowBuffer& out) {
  const std::size_t done = round_most(x, n, block, out);
  if (done < n)
    avx2::round_row(x + done, n - done, block,
                    {out.q + done, out.scale + done / block, out.sums + done / kInt8Strip});
}

void swiglu(Activation activation, float* gate, const float* up, std::size_t n) {
  if (activation != Activation::SwiGlu) return avx2::swiglu(activation, gate, up, n);
  for (std::size_t i = gate_registers(gate, up, n); i < n; ++i) gate[i] = silu(gate[i]) * up[i];
}

}  // namespace leasehold::avx512
