/// Blocks of 32 of one group: the sums of a chunk stay in registers for up to eight rows.
#pragma once

#include "kernels/cpu/avx512/int8_blocks.hpp"

namespace leasehold::avx512 {

/// Rows whose sums of a block and of a chunk fit the registers.
inline constexpr std::uint32_t kMostGroupRows = 8;

/// Adds the products of a strip's codes with the strip's elements of each row.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
add_group_strip(const std::byte* block, std::uint32_t strip, const RoundedRow* x, std::size_t first,
                __m512i (&sums)[kRows]) {
  constexpr GroupFormat kFormat = group_format(kType);
  prefetch_strip<kType>(block, strip);
  __m512i codes[4];
  load_strip<kFormat.low_bits, kFormat.high_bits>(block + kFormat.low_at(),
                                                  block + kFormat.high_at(), strip, codes);
#pragma GCC unroll 4
  for (int quad = 0; quad < 4; ++quad) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      sums[r] = _mm512_dpbusd_epi32(sums[r], codes[quad],
                                    broadcast_word(x[r].q + first + strip * kInt8Strip + quad * 4));
  }
}

/// Adds a block of 32 to the chunks.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
add_block(const std::byte* block, std::uint32_t b, const RoundedRow* x, __m512 (&chunk)[kRows]) {
  constexpr GroupFormat kFormat = group_format(kType);
  const __m512i zero = _mm512_setzero_si512();
  __m512i sums[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
    sums[r] = kFormat.offset == 0
                  ? zero
                  : _mm512_dpwssd_epi32(zero, broadcast_word(x[r].sums + b * 2),
                                        _mm512_set1_epi16(static_cast<short>(-kFormat.offset)));
#pragma GCC unroll 2
  for (std::uint32_t strip = 0; strip < 2; ++strip)
    add_group_strip<kType, kRows>(block, strip, x, std::size_t{b} * kFormat.elements, sums);
  const __m512 scales = load_halves(block);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m512 scale = _mm512_mul_ps(scales, _mm512_set1_ps(x[r].scale[b]));
    chunk[r] = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(sums[r]), chunk[r]);
    if constexpr (kFormat.has_min) {
      const __m512 min =
          _mm512_mul_ps(load_halves(block + kGroupRows * 2), _mm512_set1_ps(x[r].scale[b]));
      const __m512i sum =
          _mm512_dpwssd_epi32(zero, broadcast_word(x[r].sums + b * 2), _mm512_set1_epi16(1));
      chunk[r] = _mm512_fmadd_ps(min, _mm512_cvtepi32_ps(sum), chunk[r]);
    }
  }
}

/// A chunk of a group times kRows rows, whose sums stay in registers.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
dot_chunk_rows(const std::byte* group, Span32 blocks, const RoundedRow* x, float* out) {
  constexpr std::size_t kBlockBytes = group_format(kType).size_bytes();
  __m512 chunk[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) chunk[r] = _mm512_setzero_ps();
  for (std::uint32_t b = blocks.begin; b < blocks.end; ++b) {
    const std::byte* block = group + b * kBlockBytes;
    add_block<kType, kRows>(block, b, x, chunk);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    float* to = out + r * kGroupRows;
    _mm512_storeu_ps(to,
                     blocks.begin == 0 ? chunk[r] : _mm512_add_ps(_mm512_loadu_ps(to), chunk[r]));
  }
}

/// 1 … kMostGroupRows rows.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
dot_chunk(const std::byte* group, Span32 blocks, const RoundedRow* x, std::uint32_t n_rows,
          float* out) {
  switch (n_rows) {
    case 1:
      return dot_chunk_rows<kType, 1>(group, blocks, x, out);
    case 2:
      return dot_chunk_rows<kType, 2>(group, blocks, x, out);
    case 3:
      return dot_chunk_rows<kType, 3>(group, blocks, x, out);
    case 4:
      return dot_chunk_rows<kType, 4>(group, blocks, x, out);
    case 5:
      return dot_chunk_rows<kType, 5>(group, blocks, x, out);
    case 6:
      return dot_chunk_rows<kType, 6>(group, blocks, x, out);
    case 7:
      return dot_chunk_rows<kType, 7>(group, blocks, x, out);
    default:
      return dot_chunk_rows<kType, kMostGroupRows>(group, blocks, x, out);
  }
}

/// Memory supplies each chunk once for all rows: it stays in the first cache for the later ones,
/// and what is requested from memory meanwhile arrives.
template <TensorType kType>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] void dot_group(const std::byte* group,
                                                                            std::uint32_t n_in,
                                                                            const RoundedRow* x,
                                                                            std::uint32_t n_rows,
                                                                            float* out) {
  const std::uint32_t n_blocks = n_in / group_format(kType).elements;
  const std::uint32_t per_chunk = int8_chunk_blocks(n_blocks);
  for (std::uint32_t begin = 0; begin < n_blocks; begin += per_chunk) {
    const Span32 blocks{begin, std::min(begin + per_chunk, n_blocks)};
    for (std::uint32_t done = 0; done < n_rows;) {
      const std::uint32_t now = std::min(n_rows - done, kMostGroupRows);
      dot_chunk<kType>(group, blocks, x + done, now, out + std::size_t{done} * kGroupRows);
      done += now;
    }
  }
}

}  // namespace leasehold::avx512
