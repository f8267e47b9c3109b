#include "kernels/cpu/avx_vnni/int8.hpp"

#include <immintrin.h>

#include <algorithm>

#include "kernels/cpu/avx2/block_ends.hpp"
#include "kernels/cpu/avx2/super_blocks.hpp"
#include "kernels/cpu/group_dots.hpp"
#include "kernels/cpu/prefetch.hpp"

namespace leasehold::avx_vnni {
namespace {

using avx2::broadcast_word;
using avx2::kHalfGroup;
using avx2::kHalfPlane;

/// The most rows whose sums of a block fit the registers beside the codes of both halves of a
/// group.
constexpr std::uint32_t kRegisterRows = 4;

/// One register for each half of a group.
using Integers = __m256i[2];
using Floats = __m256[2];

/// Adds the products of four codes of each matrix row with four elements of each row of x. Both
/// halves of a group use each element that is loaded.
template <TensorType kType, int kRows, int kQuad>
[[gnu::always_inline, gnu::target("avx2,fma,f16c,avxvnni")]] inline void add_quad(
    const std::byte* low, const Integers& upper, const RoundedRow* x, std::size_t first,
    Integers (&sums)[kRows]) {
  constexpr GroupFormat kFormat = group_format(kType);
  Integers codes;
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half)
    codes[half] =
        avx2::through_table<kType>(avx2::codes_of<kFormat.low_bits, kFormat.high_bits, kQuad>(
            low + half * kHalfPlane, upper[half]));
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m256i elements = broadcast_word(x[r].q + first + kQuad * 4);
    sums[r][0] = _mm256_dpbusd_avx_epi32(sums[r][0], codes[0], elements);
    sums[r][1] = _mm256_dpbusd_avx_epi32(sums[r][1], codes[1], elements);
  }
}

/// Adds the products of a strip's codes with the strip's elements of each row.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("avx2,fma,f16c,avxvnni")]] inline void add_strip(
    const std::byte* block, std::uint32_t strip, const RoundedRow* x, std::size_t first,
    Integers (&sums)[kRows]) {
  constexpr GroupFormat kFormat = group_format(kType);
  prefetch_strip<kType>(block, strip);
  const std::byte* low = block + kFormat.low_at() + strip * (kFormat.low_bits / 2) * kPlaneBytes;
  const std::byte* high = block + kFormat.high_at();
  const Integers upper = {avx2::load_upper<kFormat.high_bits>(high, strip),
                          avx2::load_upper<kFormat.high_bits>(high + kHalfPlane, strip)};
  first += strip * kInt8Strip;
  add_quad<kType, kRows, 0>(low, upper, x, first, sums);
  add_quad<kType, kRows, 1>(low, upper, x, first, sums);
  add_quad<kType, kRows, 2>(low, upper, x, first, sums);
  add_quad<kType, kRows, 3>(low, upper, x, first, sums);
}

/// Adds a block of 32 to the chunks.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("avx2,fma,f16c,avxvnni")]] inline void add_block(
    const std::byte* block, std::uint32_t b, const RoundedRow* x, Floats (&chunk)[kRows]) {
  constexpr GroupFormat kFormat = group_format(kType);
  const __m256i zero = _mm256_setzero_si256();
  Integers sums[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
    sums[r][0] = sums[r][1] =
        kFormat.offset == 0
            ? zero
            : _mm256_madd_epi16(broadcast_word(x[r].sums + b * 2),
                                _mm256_set1_epi16(static_cast<short>(-kFormat.offset)));
#pragma GCC unroll 2
  for (std::uint32_t strip = 0; strip < 2; ++strip)
    add_strip<kType, kRows>(block, strip, x, std::size_t{b} * kFormat.elements, sums);
#pragma GCC unroll 2
  for (std::uint32_t half = 0; half < 2; ++half) {
    const avx2::HalfFactors factors = avx2::load_factors<kType>(block, half);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      avx2::end_block<kType>(factors, x[r], b, sums[r][half], chunk[r][half]);
  }
}

/// Number n of each row, as 32 bits.
[[gnu::always_inline, gnu::target("avx2,fma,f16c,avxvnni")]] inline __m256i number_of(
    const __m256i (&numbers)[4], std::uint32_t n) {
  const __m128i places = _mm_cvtsi32_si128(static_cast<int>(24 - n % 4 * 8));
  return _mm256_srai_epi32(_mm256_sll_epi32(numbers[n / 4], places), 24);
}

/// Computes the products of a block of 256 with each row, times the scales of its sub-blocks.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("avx2,fma,f16c,avxvnni")]] inline void multiply_sub_blocks(
    const std::byte* block, const avx2::SubBlocks (&sub)[2], const RoundedRow* x, std::size_t first,
    Integers (&products)[kRows]) {
  constexpr GroupFormat kFormat = group_format(kType);
  constexpr std::uint32_t kStrips = kFormat.sub_block / kInt8Strip;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) products[r][0] = products[r][1] = _mm256_setzero_si256();
  for (std::uint32_t s = 0; s < kFormat.elements / kFormat.sub_block; ++s) {
    Integers sums[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 2
    for (std::uint32_t strip = 0; strip < kStrips; ++strip)
      add_strip<kType, kRows>(block, s * kStrips + strip, x, first, sums);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256i scale = number_of(sub[half].scales, s);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r)
        products[r][half] =
            _mm256_add_epi32(products[r][half], _mm256_mullo_epi32(sums[r][half], scale));
    }
  }
}

/// Computes the sums of the activations of block b of 256, times the factors of its sub-blocks.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("avx2,fma,f16c,avxvnni")]] inline void multiply_sums(
    const avx2::SubBlocks& sub, const RoundedRow* x, std::uint32_t b, __m256i (&sums)[kRows]) {
  constexpr GroupFormat kFormat = group_format(kType);
  constexpr std::uint32_t kStrips = kFormat.sub_block / kInt8Strip;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sums[r] = _mm256_setzero_si256();
  for (std::uint32_t strip = 0; strip < kFormat.elements / kInt8Strip; strip += 2) {
    const __m256i factors =
        avx2::two_numbers_of(sub.factors, strip / kStrips, (strip + 1) / kStrips);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      sums[r] = _mm256_dpwssd_avx_epi32(sums[r], factors,
                                        broadcast_word(x[r].sums + std::size_t{b} * 16 + strip));
  }
}

/// Adds a block of 256 to the chunks.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("avx2,fma,f16c,avxvnni")]] inline void add_super_block(
    const std::byte* block, std::uint32_t b, const RoundedRow* x, Floats (&chunk)[kRows]) {
  constexpr GroupFormat kFormat = group_format(kType);
  const avx2::SubBlocks sub[2] = {avx2::load_sub_blocks<kType>(block, 0),
                                  avx2::load_sub_blocks<kType>(block, 1)};
  Integers products[kRows];
  multiply_sub_blocks<kType, kRows>(block, sub, x, std::size_t{b} * kFormat.elements, products);
#pragma GCC unroll 2
  for (std::uint32_t half = 0; half < 2; ++half) {
    __m256i sums[kRows];
    multiply_sums<kType, kRows>(sub[half], x, b, sums);
    const avx2::HalfFactors factors = avx2::load_factors<kType>(block, half);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      avx2::end_super_block<kType>(factors, x[r].scale[b], products[r][half], sums[r],
                                   chunk[r][half]);
  }
}

/// Multiplies a chunk of a group with kRows rows.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("avx2,fma,f16c,avxvnni")]] inline void dot_chunk_rows(
    const std::byte* group, Span32 blocks, const RoundedRow* x, float* out) {
  constexpr std::size_t kBlockBytes = group_format(kType).size_bytes();
  Floats chunk[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) chunk[r][0] = chunk[r][1] = _mm256_setzero_ps();
  for (std::uint32_t b = blocks.begin; b < blocks.end; ++b) {
    const std::byte* block = group + b * kBlockBytes;
    if constexpr (group_format(kType).has_sub_blocks())
      add_super_block<kType, kRows>(block, b, x, chunk);
    else
      add_block<kType, kRows>(block, b, x, chunk);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (std::uint32_t half = 0; half < 2; ++half) {
      float* to = out + r * kGroupRows + half * kHalfGroup;
      const __m256 sum = chunk[r][half];
      _mm256_storeu_ps(to, blocks.begin == 0 ? sum : _mm256_add_ps(_mm256_loadu_ps(to), sum));
    }
  }
}

/// Multiplies a chunk of a group with 1 … kRegisterRows rows.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx2,fma,f16c,avxvnni")]] inline void dot_chunk(
    const std::byte* group, Span32 blocks, const RoundedRow* x, std::uint32_t n_rows, float* out) {
  switch (n_rows) {
    case 1:
      return dot_chunk_rows<kType, 1>(group, blocks, x, out);
    case 2:
      return dot_chunk_rows<kType, 2>(group, blocks, x, out);
    case 3:
      return dot_chunk_rows<kType, 3>(group, blocks, x, out);
    default:
      return dot_chunk_rows<kType, kRegisterRows>(group, blocks, x, out);
  }
}

template <TensorType kType>
[[gnu::target("avx2,fma,f16c,avxvnni")]] void dot_group(const std::byte* group,
                                                        const Int8Tile& tile, float* out) {
  for (ChunkRows at(tile.n_in / group_format(kType).elements, tile.n_rows); !at.is_done();) {
    const std::uint32_t now = std::min(at.left(), kRegisterRows);
    dot_chunk<kType>(group, at.blocks(), tile.x + at.row(), now,
                     out + std::size_t{at.row()} * kGroupRows);
    at.pass(now);
  }
}

}  // namespace

void dot_groups_int8(const Int8Tile& tile) {
  each_group(tile, [&]<TensorType kType>(const std::byte* group, float* out) {
    dot_group<kType>(group, tile, out);
  });
}

}  // namespace leasehold::avx_vnni
