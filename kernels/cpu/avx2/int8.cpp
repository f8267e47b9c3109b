#include "kernels/cpu/avx2/int8.hpp"

#include <immintrin.h>

#include "kernels/cpu/avx2/block_ends.hpp"
#include "kernels/cpu/avx2/super_blocks.hpp"
#include "kernels/cpu/group_dots.hpp"
#include "kernels/cpu/prefetch.hpp"

namespace leasehold::avx2 {
namespace {

/// Multiplies a strip's codes with the strip's elements of each row, and adds pairs of products,
/// times `factors`, to the sums.
///
/// The first factor of maddubs is unsigned. The instruction adds pairs of products in 16 bits, and
/// `kAtOnce` of its results are added before they are widened.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void add_strip(
    const std::byte* half_block, std::uint32_t strip, const RoundedRow* x, std::size_t first,
    __m256i factors, __m256i (&sums)[kRows]) {
  constexpr GroupFormat kFormat = group_format(kType);
  constexpr int kAtOnce = kFormat.largest_code() > 31 ? 2 : 4;
  static_assert(kFormat.largest_code() * 127 * 2 * kAtOnce <= INT16_MAX);
  __m256i codes[4];
  load_codes<kType>(half_block, strip, codes);
#pragma GCC unroll 4
  for (int begin = 0; begin < 4; begin += kAtOnce) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const std::int8_t* q = x[r].q + first + strip * kInt8Strip;
      __m256i pairs = _mm256_maddubs_epi16(codes[begin], broadcast_word(q + begin * 4));
#pragma GCC unroll 4
      for (int quad = begin + 1; quad < begin + kAtOnce; ++quad)
        pairs = _mm256_add_epi16(pairs,
                                 _mm256_maddubs_epi16(codes[quad], broadcast_word(q + quad * 4)));
      sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(pairs, factors));
    }
  }
}

/// Makes the compiler complete the value here, before it begins those of the next row: otherwise it
/// runs out of registers.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void complete(__m256i& value) {
  asm volatile("" : "+x"(value));
}

/// The same for wide codes, which would saturate: the sign moves from the element to x.
template <TensorType kType, int kRows>
  requires(group_format(kType).has_wide_codes())
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void add_strip(
    const std::byte* half_block, std::uint32_t strip, const RoundedRow* x, std::size_t first,
    __m256i factors, __m256i (&sums)[kRows]) {
  constexpr GroupFormat kFormat = group_format(kType);
  static_assert(kFormat.high_bits == 0);
  __m256i codes[4];
  load_strip<kFormat.low_bits, 0>(half_block + kFormat.low_at(), nullptr, strip, codes);
  constexpr int kAtOnce = 2;
#pragma GCC unroll 2
  for (int begin = 0; begin < 4; begin += kAtOnce) {
    SignedElements signed_codes[kAtOnce];
#pragma GCC unroll 2
    for (int i = 0; i < kAtOnce; ++i) signed_codes[i] = signed_elements<kType>(codes[begin + i]);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const std::int8_t* of_row = x[r].q + first + strip * kInt8Strip + begin * 4;
#pragma GCC unroll 2
      for (int i = 0; i < kAtOnce; ++i) {
        const auto& [elements, magnitudes] = signed_codes[i];
        const __m256i q = _mm256_sign_epi8(broadcast_word(of_row + i * 4), elements);
        const __m256i pairs = _mm256_maddubs_epi16(magnitudes, q);
        sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(pairs, factors));
      }
      complete(sums[r]);
    }
  }
}

/// Adds half a block of 32 to the chunks.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void add_block(const std::byte* block,
                                                                           std::uint32_t b,
                                                                           std::uint32_t half,
                                                                           const RoundedRow* x,
                                                                           __m256 (&chunk)[kRows]) {
  constexpr GroupFormat kFormat = group_format(kType);
  // add_strip subtracts the offset of wide codes before it multiplies.
  constexpr std::int32_t kOffset = kFormat.has_wide_codes() ? 0 : kFormat.offset;
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sums[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
    sums[r] = kOffset == 0 ? _mm256_setzero_si256()
                           : _mm256_madd_epi16(broadcast_word(x[r].sums + b * 2),
                                               _mm256_set1_epi16(static_cast<short>(-kOffset)));
  // A branch between the strips would move the sums of eight rows to memory.
  constexpr std::uint32_t kRequestedFirst = kRows == 8 && kFormat.table == CodeTable::None ? 2 : 0;
#pragma GCC unroll 2
  for (std::uint32_t strip = 0; strip < kRequestedFirst; ++strip)
    if (half == 0) prefetch_strip<kType>(block, strip);
#pragma GCC unroll 2
  for (std::uint32_t strip = 0; strip < 2; ++strip) {
    if (half == 0 && strip >= kRequestedFirst) prefetch_strip<kType>(block, strip);
    add_strip<kType, kRows>(block + half * kHalfPlane, strip, x, std::size_t{b} * kFormat.elements,
                            ones, sums);
  }
  const HalfFactors factors = load_factors<kType>(block, half);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) end_block<kType>(factors, x[r], b, sums[r], chunk[r]);
}

/// True for types whose products of a block of 32, without the offset, are added up in 16 bits.
constexpr bool sums_in_words(const GroupFormat& format) {
  return !format.has_sub_blocks() && format.offset == 8 && format.largest_code() <= 15;
}

/// The same for types whose sums fit 16 bits, which are widened once. For 32 products of eight rows
/// this takes 11 multiplications instead of 13. A core starts two in a cycle. The sums wrap around
/// while products with the offset are added. Without it, the even or odd pairs of a block have at
/// most 8·8·127 + 8·15·127 + 8·8·127 = 31 496.
template <TensorType kType, int kRows>
  requires(sums_in_words(group_format(kType)))
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void add_block(const std::byte* block,
                                                                           std::uint32_t b,
                                                                           std::uint32_t half,
                                                                           const RoundedRow* x,
                                                                           __m256 (&chunk)[kRows]) {
  constexpr GroupFormat kFormat = group_format(kType);
  __m256i codes[2][4];
#pragma GCC unroll 2
  for (std::uint32_t strip = 0; strip < 2; ++strip) {
    load_codes<kType>(block + half * kHalfPlane, strip, codes[strip]);
    if (half == 0) prefetch_strip<kType>(block, strip);
  }
  const HalfFactors factors = load_factors<kType>(block, half);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const std::int8_t* q = x[r].q + std::size_t{b} * kFormat.elements;
    const __m256i offsets = _mm256_slli_epi16(broadcast_word(x[r].sums + b * 2), 3);
    __m256i pairs = _mm256_maddubs_epi16(codes[0][0], broadcast_word(q));
    pairs = _mm256_sub_epi16(pairs, offsets);
#pragma GCC unroll 8
    for (int quad = 1; quad < 8; ++quad) {
      const __m256i more =
          _mm256_maddubs_epi16(codes[quad / 4][quad % 4], broadcast_word(q + quad * 4));
      pairs = _mm256_add_epi16(pairs, more);
      complete(pairs);
    }
    end_block<kType>(factors, x[r], b, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)), chunk[r]);
  }
}

/// Adds half a block of 256 to the chunks.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void add_super_block(
    const std::byte* block, std::uint32_t b, std::uint32_t half, const RoundedRow* x,
    __m256 (&chunk)[kRows]) {
  constexpr GroupFormat kFormat = group_format(kType);
  constexpr std::uint32_t kStrips = kFormat.sub_block / kInt8Strip;
  constexpr std::int32_t kOffset = kFormat.has_wide_codes() ? 0 : kFormat.offset;
  const std::byte* half_block = block + half * kHalfPlane;
  const SubBlocks sub = load_sub_blocks<kType>(block, half);
  __m256i products[kRows];
  __m256i sums[kRows];  // sums of activations, times the factors
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) products[r] = sums[r] = _mm256_setzero_si256();
  for (std::uint32_t strip = 0; strip < kFormat.elements / kInt8Strip; ++strip) {
    const std::uint32_t s = strip / kStrips;
    if (half == 0) prefetch_strip<kType>(block, strip);
    add_strip<kType, kRows>(half_block, strip, x, std::size_t{b} * kFormat.elements,
                            two_numbers_of(sub.scales, s, s), products);
  }
  for (std::uint32_t strip = 0; strip < kFormat.elements / kInt8Strip; strip += 2) {
    const __m256i factors = two_numbers_of(sub.factors, strip / kStrips, (strip + 1) / kStrips);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256i two = broadcast_word(x[r].sums + std::size_t{b} * 16 + strip);
      sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(factors, two));
    }
  }
  const HalfFactors factors = load_factors<kType>(block, half);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
    end_super_block<kType>(factors, x[r].scale[b], products[r], sums[r], chunk[r], kOffset);
}

/// Multiplies a chunk of half a group with kRows rows; the sums stay in registers.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void dot_chunk_rows(
    const std::byte* group, Span32 blocks, std::uint32_t half, const RoundedRow* x, float* out) {
  constexpr std::size_t kBlockBytes = group_format(kType).size_bytes();
  __m256 chunk[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) chunk[r] = _mm256_setzero_ps();
  for (std::uint32_t b = blocks.begin; b < blocks.end; ++b) {
    const std::byte* block = group + b * kBlockBytes;
    if constexpr (group_format(kType).has_sub_blocks())
      add_super_block<kType, kRows>(block, b, half, x, chunk);
    else
      add_block<kType, kRows>(block, b, half, x, chunk);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    float* to = out + r * kGroupRows + half * kHalfGroup;
    _mm256_storeu_ps(to,
                     blocks.begin == 0 ? chunk[r] : _mm256_add_ps(_mm256_loadu_ps(to), chunk[r]));
  }
}

/// The same with eight rows, apart from the other functions: together, the compiler spills sums.
template <TensorType kType>
[[gnu::noinline, gnu::target("avx2,fma,f16c")]] void dot_chunk_apart(
    const std::byte* group, Span32 blocks, std::uint32_t half, const RoundedRow* x, float* out) {
  dot_chunk_rows<kType, 8>(group, blocks, half, x, out);
}

/// True for types whose codes take several instructions to load: eight rows share them.
constexpr bool takes_eight_rows(const GroupFormat& format) {
  return format.table != CodeTable::None || format.high_bits != 0 || format.low_bits == 8 ||
         format.has_sub_blocks();
}

template <TensorType kType>
[[gnu::target("avx2,fma,f16c")]] void dot_group(const std::byte* group, const Int8Tile& tile,
                                                float* out) {
  constexpr GroupFormat kFormat = group_format(kType);
  constexpr bool kTakesEight = takes_eight_rows(kFormat);
  for (ChunkRows at(tile.n_in / kFormat.elements, tile.n_rows); !at.is_done();) {
    const std::uint32_t few = at.left() >= 4 ? 4 : at.left() >= 2 ? 2 : 1;
    const std::uint32_t now = kTakesEight && at.left() >= 8 ? 8 : few;
    const RoundedRow* x = tile.x + at.row();
    float* to = out + std::size_t{at.row()} * kGroupRows;
    for (std::uint32_t half = 0; half < 2; ++half) {
      if constexpr (kTakesEight && kFormat.table == CodeTable::None) {
        if (now == 8) dot_chunk_apart<kType>(group, at.blocks(), half, x, to);
      } else if constexpr (kTakesEight) {
        if (now == 8) dot_chunk_rows<kType, 8>(group, at.blocks(), half, x, to);
      }
      if (now == 4) dot_chunk_rows<kType, 4>(group, at.blocks(), half, x, to);
      if (now == 2) dot_chunk_rows<kType, 2>(group, at.blocks(), half, x, to);
      if (now == 1) dot_chunk_rows<kType, 1>(group, at.blocks(), half, x, to);
    }
    at.pass(now);
  }
}

}  // namespace

void dot_groups_int8(const Int8Tile& tile) {
  each_group(tile, [&]<TensorType kType>(const std::byte* group, float* out) {
    dot_group<kType>(group, tile, out);
  });
}

}  // namespace leasehold::avx2
