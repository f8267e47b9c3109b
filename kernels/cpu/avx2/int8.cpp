#include "kernels/cpu/avx2/int8.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace leasehold::avx2 {
namespace {

constexpr std::uint32_t kQuads = kInt8Block / 4;
constexpr std::size_t kRegisterBytes = 32;
constexpr std::uint32_t kHalfGroup = kGroupRows / 2;

[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256i load_integers(
    const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline std::uint32_t largest_of(
    __m256i numbers) {
  __m128i four =
      _mm_max_epu32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256(numbers, 1));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4E));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0xB1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(four));
}

[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline std::int32_t sum_of(__m256i numbers) {
  __m128i four =
      _mm_add_epi32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256(numbers, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xB1));
  return _mm_cvtsi128_si32(four);
}

/// Rounds one block whose scale is a positive number; returns the sum of q.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline std::int32_t round_block(
    const float* x, float scale, std::int8_t* q) {
  const __m256 d = _mm256_set1_ps(scale);
  __m256i part[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m256 ratio = _mm256_div_ps(_mm256_loadu_ps(x + i * 8), d);
    part[i] =
        _mm256_cvtps_epi32(_mm256_round_ps(ratio, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  const __m256i sums =
      _mm256_add_epi32(_mm256_add_epi32(part[0], part[1]), _mm256_add_epi32(part[2], part[3]));
  // Packing works in halves of a register; the last permutation restores the order.
  const __m256i low = _mm256_packs_epi32(part[0], part[1]);
  const __m256i high = _mm256_packs_epi32(part[2], part[3]);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i packed = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), packed);
  return sum_of(sums);
}

/// Products of four elements each, added: 8 rows of a group by one quad of a row.
///
/// The first factor of maddubs is unsigned: |w| with the sign of w moved to x, because offset
/// numbers of Q8_0 would saturate (2 · 255 · 127); those of Q4_0 would not.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256i quad_products(
    const std::byte* quads, std::uint32_t quad, std::uint32_t half, __m256i x) {
  const std::size_t half_bytes = half * kRegisterBytes;
  const __m256i ones = _mm256_set1_epi16(1);
  if constexpr (kType == TensorType::Q8_0) {
    const __m256i offset = _mm256_set1_epi8(static_cast<char>(0x80));
    const __m256i w =
        _mm256_xor_si256(load_integers(quads + quad * 2 * kRegisterBytes + half_bytes), offset);
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
    return _mm256_madd_epi16(pairs, ones);
  }
  const __m256i both = load_integers(quads + quad % 4 * 2 * kRegisterBytes + half_bytes);
  const __m256i shifted = quad < 4 ? both : _mm256_srli_epi16(both, 4);
  const __m256i w = _mm256_and_si256(shifted, _mm256_set1_epi8(15));
  return _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), ones);
}

/// Half a group times kRows rows.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void dot_half_group(
    const std::byte* group, std::uint32_t n_blocks, std::uint32_t half, const RoundedRow* x,
    float* out) {
  constexpr std::size_t kBlockBytes = kGroupRows * std::size_t{block_shape(kType).size_bytes};
  constexpr std::size_t kScalesBytes = kGroupRows * 2;
  constexpr std::int32_t kOffset = kType == TensorType::Q8_0 ? 0 : group_offset(kType);
  const std::uint32_t per_chunk = int8_chunk_blocks(n_blocks);
  for (std::uint32_t begin = 0; begin < n_blocks; begin += per_chunk) {
    __m256 chunk[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) chunk[r] = _mm256_setzero_ps();
    const std::uint32_t end = std::min(begin + per_chunk, n_blocks);
    for (std::uint32_t b = begin; b < end; ++b) {
      const std::byte* block = group + b * kBlockBytes;
      __m256i sums[kRows];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sums[r] = _mm256_set1_epi32(-kOffset * x[r].sums[b]);
#pragma GCC unroll 8
      for (std::uint32_t quad = 0; quad < kQuads; ++quad) {
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          std::int32_t four;
          std::memcpy(&four, x[r].q + b * kInt8Block + quad * 4, sizeof four);
          sums[r] = _mm256_add_epi32(sums[r], quad_products<kType>(block + kScalesBytes, quad, half,
                                                                   _mm256_set1_epi32(four)));
        }
      }
      const __m256 scales =
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block) + half));
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const __m256 scale = _mm256_mul_ps(scales, _mm256_set1_ps(x[r].scale[b]));
        chunk[r] = _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(sums[r]), chunk[r]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      float* to = out + r * kGroupRows + half * kHalfGroup;
      _mm256_storeu_ps(to, begin == 0 ? chunk[r] : _mm256_add_ps(_mm256_loadu_ps(to), chunk[r]));
    }
  }
}

template <TensorType kType>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void dot_groups(const std::byte* group,
                                                                            std::uint32_t n_blocks,
                                                                            const RoundedRow* x,
                                                                            std::uint32_t n_rows,
                                                                            float* out) {
  for (std::uint32_t done = 0; done < n_rows;) {
    const std::uint32_t left = n_rows - done;
    const std::uint32_t now = left >= 4 ? 4 : left >= 2 ? 2 : 1;
    float* to = out + std::size_t{done} * kGroupRows;
    for (std::uint32_t half = 0; half < 2; ++half) {
      if (now == 4) dot_half_group<kType, 4>(group, n_blocks, half, x + done, to);
      if (now == 2) dot_half_group<kType, 2>(group, n_blocks, half, x + done, to);
      if (now == 1) dot_half_group<kType, 1>(group, n_blocks, half, x + done, to);
    }
    done += now;
  }
}

}  // namespace

void round_row(const float* x, std::size_t n, const RoundedRowBuffer& out) {
  const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
  for (std::size_t b = 0; b < n / kInt8Block; ++b) {
    const float* block = x + b * kInt8Block;
    __m256i largest = _mm256_setzero_si256();
    for (int i = 0; i < 4; ++i)
      largest =
          _mm256_max_epu32(largest, _mm256_and_si256(load_integers(block + i * 8), magnitude));
    const float d = int8_scale(largest_of(largest));
    std::int8_t* q = out.q + b * kInt8Block;
    if (!(d > 0)) std::memset(q, 0, kInt8Block);
    out.scale[b] = d;
    out.sums[b] = d > 0 ? round_block(block, d, q) : 0;
  }
}

void dot_group_int8(TensorType type, const std::byte* group, std::uint32_t n_in,
                    const RoundedRow* x, std::uint32_t n_rows, float* out) {
  if (type == TensorType::Q8_0)
    return dot_groups<TensorType::Q8_0>(group, n_in / kInt8Block, x, n_rows, out);
  dot_groups<TensorType::Q4_0>(group, n_in / kInt8Block, x, n_rows, out);
}

}  // namespace leasehold::avx2
