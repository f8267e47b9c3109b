/// A *part* of a tile: one block of 256 of each group. Its unpacked codes stay in the L1 cache
/// while all rows of the tile pass.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/avx512/super_blocks.hpp"
#include "kernels/cpu/prefetch.hpp"
#include "kernels/cpu/tiling.hpp"

namespace leasehold::avx512 {

inline constexpr std::uint32_t kPartElements = 256;
inline constexpr std::uint32_t kPartStrips = kPartElements / kInt8Strip;
inline constexpr std::uint32_t kStripBytes = 4 * kPlaneBytes;  ///< Unpacked codes of a strip.
/// A strip's share of a block, in bytes.
constexpr std::uint32_t strip_bytes(TensorType type) {
  return group_format(type).size_bytes() / (group_format(type).elements / kInt8Strip);
}
/// The distance from a group's block at offset `at` to what is requested from memory, while two
/// groups are multiplied together. Past the end of the group the distance skips the other group.
inline std::size_t ahead_bytes(std::size_t at, std::size_t group_bytes) {
  return at + kPrefetchBytes < group_bytes ? kPrefetchBytes : kPrefetchBytes + group_bytes;
}
/// The fewest passes over a part of two groups.
inline constexpr std::uint32_t kLeastPasses = 2;

/// The terms that a row adds to a block of 256 besides its elements, by type.
union alignas(64) RowTerms {
  /// Types with an offset: minus offset · Σq, from which the sums of sub-blocks start.
  std::int32_t starts[kPartStrips];
  std::int16_t sub_sums[kPartStrips];  ///< Types with minima: Σq per sub-block.
};

/// The integers of a group's block of 256, in the form in which products are multiplied.
struct SubBlockFactors {
  __m512i scales[kPartStrips];      ///< 32 bits per row of the group.
  __m512i minima[kPartStrips / 2];  ///< Two minima of 16 bits per row of the group.
};

/// The data that a thread keeps of a part, and the sums of a chunk that continues in the next part.
struct alignas(64) PartScratch {
  std::byte codes[kInt8TileGroups][kPartStrips * kStripBytes];
  SubBlockFactors factors[kInt8TileGroups];
  RowTerms terms[kInt8TileRows];
  GroupDots chunk[kInt8TileGroups];
};

struct Part {
  const RoundedRow* x;  ///< The tile's rows.
  PartScratch* scratch;
  GroupDots* out;                                 ///< [groups]
  const std::byte* groups[kInt8TileGroups] = {};  ///< The part's block of each group.
  std::uint32_t block = 0;                        ///< Index of the part's block in each row.
  /// With strip s of the part, a pass requests lines from memory that begin ahead_bytes + s ·
  /// strip_bytes after the part's block of a group.
  std::size_t ahead_bytes = 0;
  std::size_t strip_bytes = 0;
  bool begins_chunk = false;
  bool ends_chunk = false;
  bool is_first_chunk = false;
};

/// Prepares the terms of row x and block b of 256.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
prepare_row(const RoundedRow& x, std::size_t b, RowTerms& to) {
  constexpr GroupFormat kFormat = group_format(kType);
  const __m256i strips =
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x.sums + b * kPartStrips));
  auto* sub_sums = reinterpret_cast<__m256i*>(to.sub_sums);
  if constexpr (kFormat.sub_block == 2 * kInt8Strip && !kFormat.has_min) {
    const __m256i starts = _mm256_mullo_epi32(_mm256_madd_epi16(strips, _mm256_set1_epi16(1)),
                                              _mm256_set1_epi32(-kFormat.offset));
    _mm256_store_si256(reinterpret_cast<__m256i*>(to.starts), starts);
  } else if constexpr (kFormat.sub_block == 2 * kInt8Strip) {
    const __m256i pairs = _mm256_madd_epi16(strips, _mm256_set1_epi16(1));
    _mm256_store_si256(sub_sums, _mm512_maskz_cvtepi32_epi16(0xFF, _mm512_castsi256_si512(pairs)));
  } else if constexpr (kFormat.has_min) {
    _mm256_store_si256(sub_sums, strips);
  } else {
    const __m512i sums = _mm512_maskz_cvtepi16_epi32(0xFFFF, strips);
    _mm512_store_si512(to.starts, _mm512_mullo_epi32(sums, _mm512_set1_epi32(-kFormat.offset)));
  }
}

/// Unpacks the scales and minima of a block of 256.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
prepare_factors(const std::byte* block, SubBlockFactors& to) {
  constexpr GroupFormat kFormat = group_format(kType);
  constexpr std::uint32_t kSubBlocks = kFormat.elements / kFormat.sub_block;
  const SubBlocks sub = load_sub_blocks<kType>(block);
#pragma GCC unroll 16
  for (std::uint32_t s = 0; s < kSubBlocks; ++s) to.scales[s] = number_of(sub.scales, s);
  if constexpr (kFormat.has_min) {
#pragma GCC unroll 8
    for (std::uint32_t s = 0; s < kSubBlocks; s += 2)
      to.minima[s / 2] = two_numbers_of(sub.minima, s, s + 1);
  }
}

}  // namespace leasehold::avx512
