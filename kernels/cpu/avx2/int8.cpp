#include "kernels/cpu/avx2/int8.hpp"

#include <immintrin.h>

#include <algorithm>

#include "kernels/cpu/avx2/block_ends.hpp"
#include "kernels/cpu/avx2/super_blocks.hpp"
#include "kernels/cpu/prefetch.hpp"
#include "kernels/cpu/tiling.hpp"

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

/// Makes the compiler compute the value here, not earlier: eight rows leave no register for values
/// that wait.
template <int kRows>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void compute_now(__m256i& value) {
  if constexpr (kRows == 8) asm volatile("" : "+x"(value));
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
#pragma GCC unroll 4
  for (int quad = 0; quad < 4; ++quad) {
    compute_now<kRows>(codes[quad]);
    const SignedElements signed_codes = signed_elements<kType>(codes[quad]);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256i q = broadcast_word(x[r].q + first + strip * kInt8Strip + quad * 4);
      const __m256i pairs =
          _mm256_maddubs_epi16(signed_codes.magnitudes, _mm256_sign_epi8(q, signed_codes.elements));
      sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(pairs, factors));
      compute_now<kRows>(sums[r]);
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

/// Multiplies chunk by chunk, so that memory supplies each chunk once for all rows.
template <TensorType kType>
[[gnu::target("avx2,fma,f16c")]] void dot_group(const std::byte* group, std::uint32_t n_in,
                                                const RoundedRow* x, std::uint32_t n_rows,
                                                float* out) {
  constexpr GroupFormat kFormat = group_format(kType);
  constexpr bool kTakesEight = takes_eight_rows(kFormat);
  const std::uint32_t n_blocks = n_in / group_format(kType).elements;
  const std::uint32_t per_chunk = int8_chunk_blocks(n_blocks);
  for (std::uint32_t begin = 0; begin < n_blocks; begin += per_chunk) {
    const Span32 blocks{begin, std::min(begin + per_chunk, n_blocks)};
    for (std::uint32_t done = 0; done < n_rows;) {
      const std::uint32_t left = n_rows - done;
      const std::uint32_t few = left >= 4 ? 4 : left >= 2 ? 2 : 1;
      const std::uint32_t now = kTakesEight && left >= 8 ? 8 : few;
      float* to = out + std::size_t{done} * kGroupRows;
      for (std::uint32_t half = 0; half < 2; ++half) {
        if constexpr (kTakesEight && kFormat.table == CodeTable::None) {
          if (now == 8) dot_chunk_apart<kType>(group, blocks, half, x + done, to);
        } else if constexpr (kTakesEight) {
          if (now == 8) dot_chunk_rows<kType, 8>(group, blocks, half, x + done, to);
        }
        if (now == 4) dot_chunk_rows<kType, 4>(group, blocks, half, x + done, to);
        if (now == 2) dot_chunk_rows<kType, 2>(group, blocks, half, x + done, to);
        if (now == 1) dot_chunk_rows<kType, 1>(group, blocks, half, x + done, to);
      }
      done += now;
    }
  }
}

}  // namespace

void dot_groups_int8(const Int8Tile& tile) {
  const std::uint64_t group_bytes = row_group_bytes(tile.type, tile.n_in);
  visit_group_type(tile.type, [&]<TensorType kType> {
    for (std::uint32_t g = 0; g < tile.n_groups; ++g)
      dot_group<kType>(tile.groups + g * group_bytes, tile.n_in, tile.x, tile.n_rows,
                       tile.out[g][0]);
  });
}

}  // namespace leasehold::avx2
