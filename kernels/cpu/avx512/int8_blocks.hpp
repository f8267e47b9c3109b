/// Multiplies the blocks of a part with some of the tile's rows; the sums stay in registers.
#pragma once

#include <cstring>

#include "ipc/segment/segment_layout.hpp"
#include "kernels/cpu/avx512/int8_part.hpp"

namespace leasehold::avx512 {

/// The passes of a part, each over some of the tile's rows.
enum class Pass : std::uint8_t {
  Only,   ///< Unpacks codes.
  First,  ///< Unpacks codes and keeps them.
  Later,  ///< Loads what the first pass kept.
};

/// One register per group and row.
template <int kGroups, int kRows>
using IntTile = __m512i[kGroups][kRows];
template <int kGroups, int kRows>
using FloatTile = __m512[kGroups][kRows];

/// The rows of a pass, as pointers to their elements in the part's block.
template <int kRows>
struct PassRows {
  const std::int8_t* q[kRows];
  const float* scales[kRows];
  const std::int16_t* sums[kRows];
  const RowTerms* terms;  ///< [kRows]
};

/// Broadcasts two or four elements of a rounded row to all rows of a group.
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline __m512i
broadcast_word(const void* from) {
  std::int32_t word;
  std::memcpy(&word, from, sizeof word);
  return _mm512_set1_epi32(word);
}

[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline __m512
load_halves(const std::byte* from) {
  return _mm512_maskz_cvtph_ps(0xFFFF, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

/// The scales of a block.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline __m512
load_scales(const std::byte* block) {
  if constexpr (group_format(kType).scale_bytes == 2) return load_halves(block);
  // half_power_of_two: (e - 1) << 23, and 2^21 << e for the two smallest exponents.
  const __m512i e =
      _mm512_maskz_cvtepu8_epi32(0xFFFF, _mm_loadu_si128(reinterpret_cast<const __m128i*>(block)));
  const __m512i one = _mm512_set1_epi32(1);
  const __m512i normal = _mm512_maskz_slli_epi32(0xFFFF, _mm512_sub_epi32(e, one), 23);
  return _mm512_castsi512_ps(_mm512_mask_sllv_epi32(normal, _mm512_cmple_epi32_mask(e, one),
                                                    _mm512_set1_epi32(0x00200000), e));
}

/// Uses a mask, because GCC 12 reports uninitialised values inside the intrinsic without a mask.
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline __m512
to_floats(__m512i integers) {
  return _mm512_maskz_cvtepi32_ps(0xFFFF, integers);
}

/// Requests a share of the next blocks of group g from memory. Every pass requests equally many
/// lines, because a processor waits for only a few lines at once.
template <TensorType kType>
[[gnu::always_inline]] inline void prefetch_share(const Part& part, int g, std::size_t strip) {
  constexpr std::uint32_t kShareBytes = strip_bytes(kType) / kLeastPasses;
  static_assert(kShareBytes <= 3 * kCacheLineBytes);
  const std::byte* from = part.groups[g] + part.ahead_bytes + strip * part.strip_bytes;
  __builtin_prefetch(from);
  if constexpr (kShareBytes > kCacheLineBytes) __builtin_prefetch(from + kCacheLineBytes);
  if constexpr (kShareBytes > 2 * kCacheLineBytes) __builtin_prefetch(from + 2 * kCacheLineBytes);
}

/// Loads strip `strip` of group g's block. Codes of 8 bits are loaded from the block in every pass.
template <TensorType kType, Pass kPass>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
load_codes(const Part& part, int g, std::uint32_t strip, __m512i (&codes)[4]) {
  constexpr GroupFormat kFormat = group_format(kType);
  constexpr bool kAreKept = kFormat.low_bits != 8;
  if constexpr (kPass != Pass::Only) prefetch_share<kType>(part, g, strip);
  std::byte* kept = part.scratch->codes[g] + strip * kStripBytes;
  if constexpr (kPass == Pass::Later && kAreKept) return load_strip<8, 0>(kept, kept, 0, codes);
  const std::byte* block = part.groups[g];
  if constexpr (kPass == Pass::Only) prefetch_strip<kType>(block, strip);
  load_block_codes<kType>(block, strip, codes);
  if constexpr (kPass == Pass::First && kAreKept) {
#pragma GCC unroll 4
    for (int quad = 0; quad < 4; ++quad) _mm512_store_si512(kept + quad * kPlaneBytes, codes[quad]);
  }
}

/// Adds the products of a strip's codes with the strip's elements of each row.
template <TensorType kType, Pass kPass, int kGroups, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
add_strip(const Part& part, const PassRows<kRows>& x, std::uint32_t strip,
          IntTile<kGroups, kRows>& sums) {
  const std::size_t first = std::size_t{strip} * kInt8Strip;
  __m512i codes[kGroups][4];
#pragma GCC unroll 2
  for (int g = 0; g < kGroups; ++g) load_codes<kType, kPass>(part, g, strip, codes[g]);
#pragma GCC unroll 4
  for (int quad = 0; quad < 4; ++quad) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i q = broadcast_word(x.q[r] + first + quad * 4);
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g)
        sums[g][r] = _mm512_dpbusd_epi32(sums[g][r], codes[g][quad], q);
    }
  }
}

/// Sets the sums of row r to `start`.
template <int kGroups, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
start_sums(__m512i start, int r, IntTile<kGroups, kRows>& sums) {
#pragma GCC unroll 2
  for (int g = 0; g < kGroups; ++g) sums[g][r] = start;
}

/// Computes the products of a block of 256, times the scales of its sub-blocks.
template <TensorType kType, Pass kPass, int kGroups, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
multiply_sub_blocks(const Part& part, const PassRows<kRows>& x, IntTile<kGroups, kRows>& products) {
  constexpr GroupFormat kFormat = group_format(kType);
  constexpr std::uint32_t kStrips = kFormat.sub_block / kInt8Strip;
#pragma GCC unroll 16
  for (int i = 0; i < kGroups * kRows; ++i) products[i / kRows][i % kRows] = _mm512_setzero_si512();
  for (std::uint32_t s = 0; s < kFormat.elements / kFormat.sub_block; ++s) {
    IntTile<kGroups, kRows> sums;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      start_sums<kGroups, kRows>(
          kFormat.offset == 0 ? _mm512_setzero_si512() : broadcast_word(x.terms[r].starts + s), r,
          sums);
#pragma GCC unroll 2
    for (std::uint32_t strip = 0; strip < kStrips; ++strip)
      add_strip<kType, kPass, kGroups, kRows>(part, x, s * kStrips + strip, sums);
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      const __m512i scale = part.scratch->factors[g].scales[s];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r)
        products[g][r] = _mm512_add_epi32(products[g][r], _mm512_mullo_epi32(sums[g][r], scale));
    }
  }
}

/// Computes the sums of q of a block of 256, times the minima of its sub-blocks.
template <TensorType kType, int kGroups, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
multiply_minima(const Part& part, const PassRows<kRows>& x, IntTile<kGroups, kRows>& minima) {
  constexpr GroupFormat kFormat = group_format(kType);
#pragma GCC unroll 16
  for (int i = 0; i < kGroups * kRows; ++i) minima[i / kRows][i % kRows] = _mm512_setzero_si512();
#pragma GCC unroll 8
  for (std::uint32_t s = 0; s < kFormat.elements / kFormat.sub_block; s += 2) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i two_sums = broadcast_word(x.terms[r].sub_sums + s);
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g)
        minima[g][r] =
            _mm512_dpwssd_epi32(minima[g][r], part.scratch->factors[g].minima[s / 2], two_sums);
    }
  }
}

/// Adds the part's block of 256 to the chunks.
template <TensorType kType, Pass kPass, int kGroups, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
add_super_block(const Part& part, const PassRows<kRows>& x, FloatTile<kGroups, kRows>& chunk) {
  IntTile<kGroups, kRows> sums;
  multiply_sub_blocks<kType, kPass, kGroups, kRows>(part, x, sums);
#pragma GCC unroll 16
  for (int i = 0; i < kGroups * kRows; ++i) {
    const __m512 d = _mm512_set1_ps(*x.scales[i % kRows]);
    const __m512 scale = _mm512_mul_ps(load_scales<kType>(part.groups[i / kRows]), d);
    __m512& to = chunk[i / kRows][i % kRows];
    to = _mm512_fmadd_ps(scale, to_floats(sums[i / kRows][i % kRows]), to);
  }
  if constexpr (group_format(kType).has_min) {
    multiply_minima<kType, kGroups, kRows>(part, x, sums);
#pragma GCC unroll 16
    for (int i = 0; i < kGroups * kRows; ++i) {
      const __m512 d = _mm512_set1_ps(*x.scales[i % kRows]);
      const __m512 min = _mm512_mul_ps(load_halves(part.groups[i / kRows] + kGroupRows * 2), d);
      __m512& to = chunk[i / kRows][i % kRows];
      to = _mm512_fnmadd_ps(min, to_floats(sums[i / kRows][i % kRows]), to);
    }
  }
}

}  // namespace leasehold::avx512
