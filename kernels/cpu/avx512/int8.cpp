#include "kernels/cpu/avx512/int8.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace leasehold::avx512 {
namespace {

constexpr std::uint32_t kQuads = kInt8Block / 4;
constexpr std::size_t kRegisterBytes = 64;

[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline __m512i
load_quads(const std::byte* from) {
  return _mm512_loadu_si512(from);
}

[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline __m512i
quad_of(const RoundedRow& x, std::uint32_t block, std::uint32_t quad) {
  std::int32_t four;
  std::memcpy(&four, x.q + block * kInt8Block + quad * 4, sizeof four);
  return _mm512_set1_epi32(four);
}

/// The elements of quad `quad` of a block, with their offset.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline __m512i
weights_of(const std::byte* quads, std::uint32_t quad) {
  if constexpr (kType == TensorType::Q8_0) return load_quads(quads + quad * kRegisterBytes);
  const __m512i both = load_quads(quads + quad % 4 * kRegisterBytes);
  const __m512i shifted = quad < 4 ? both : _mm512_srli_epi16(both, 4);
  return _mm512_and_si512(shifted, _mm512_set1_epi8(15));
}

/// One group times kRows rows; their sums stay in registers.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
dot_group_rows(const std::byte* group, std::uint32_t n_blocks, const RoundedRow* x, float* out) {
  constexpr std::size_t kBlockBytes = kGroupRows * std::size_t{block_shape(kType).size_bytes};
  constexpr std::size_t kScalesBytes = kGroupRows * 2;
  const std::uint32_t per_chunk = int8_chunk_blocks(n_blocks);
  for (std::uint32_t begin = 0; begin < n_blocks; begin += per_chunk) {
    __m512 chunk[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) chunk[r] = _mm512_setzero_ps();
    const std::uint32_t end = std::min(begin + per_chunk, n_blocks);
    for (std::uint32_t b = begin; b < end; ++b) {
      const std::byte* block = group + b * kBlockBytes;
      __m512i sums[kRows];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r)
        sums[r] = _mm512_set1_epi32(-group_offset(kType) * x[r].sums[b]);
#pragma GCC unroll 8
      for (std::uint32_t quad = 0; quad < kQuads; ++quad) {
        const __m512i w = weights_of<kType>(block + kScalesBytes, quad);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r)
          sums[r] = _mm512_dpbusd_epi32(sums[r], w, quad_of(x[r], b, quad));
      }
      const __m512 scales =
          _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(block)));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512 scale = _mm512_mul_ps(scales, _mm512_set1_ps(x[r].scale[b]));
        chunk[r] = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(sums[r]), chunk[r]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      float* to = out + r * kGroupRows;
      _mm512_storeu_ps(to, begin == 0 ? chunk[r] : _mm512_add_ps(_mm512_loadu_ps(to), chunk[r]));
    }
  }
}

template <TensorType kType>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
dot_groups(const std::byte* group, std::uint32_t n_blocks, const RoundedRow* x,
           std::uint32_t n_rows, float* out) {
  for (std::uint32_t done = 0; done < n_rows;) {
    const std::uint32_t left = n_rows - done;
    const std::uint32_t now = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    float* to = out + std::size_t{done} * kGroupRows;
    if (now == 8) dot_group_rows<kType, 8>(group, n_blocks, x + done, to);
    if (now == 4) dot_group_rows<kType, 4>(group, n_blocks, x + done, to);
    if (now == 2) dot_group_rows<kType, 2>(group, n_blocks, x + done, to);
    if (now == 1) dot_group_rows<kType, 1>(group, n_blocks, x + done, to);
    done += now;
  }
}

}  // namespace

void dot_group_int8(TensorType type, const std::byte* group, std::uint32_t n_in,
                    const RoundedRow* x, std::uint32_t n_rows, float* out) {
  if (type == TensorType::Q8_0)
    return dot_groups<TensorType::Q8_0>(group, n_in / kInt8Block, x, n_rows, out);
  dot_groups<TensorType::Q4_0>(group, n_in / kInt8Block, x, n_rows, out);
}

}  // namespace leasehold::avx512
