/// Blocks of 32 of one or two groups: each pass multiplies whole chunks with up to eight rows.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cpu/avx512/int8_blocks.hpp"

namespace leasehold::avx512 {

/// Chunks of a tile's groups, and what their passes share.
struct ChunkWork {
  const RoundedRow* x;      ///< The tile's rows.
  GroupDots* out;           ///< [groups]
  GroupDots* chunk;         ///< [groups]: the sums of the running chunk.
  const std::byte* groups;  ///< The first group; the others follow it.
  std::size_t group_bytes;
  std::uint32_t per_chunk;  ///< Blocks of a chunk; the last may have fewer.
  Span32 blocks = {};       ///< The blocks of each row to multiply: whole chunks.
};

/// The memory requests of a pass with each block: the share of one strip, or of both strips.
struct Requests {
  std::size_t ahead;  ///< Distance from the block to the first share.
  bool both;
};

/// Block b of the groups of a pass.
struct ChunkBlock {
  const std::byte* at;  ///< Block b of the first group.
  std::size_t group_bytes;
  std::size_t b;
  Requests requests;

  const std::byte* of_group(int g) const { return at + g * group_bytes; }
};

/// A pass over rows from `first` on.
using RunChunks = void (*)(const ChunkWork& work, std::uint32_t first, Requests requests);

/// Adds the products of a strip's codes with the strip's elements of each row.
template <TensorType kType, int kGroups, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
add_chunk_strip(const ChunkBlock& block, std::uint32_t strip, const PassRows<kRows>& x,
                IntTile<kGroups, kRows>& sums) {
  constexpr GroupFormat kFormat = group_format(kType);
  const std::size_t first = block.b * kFormat.elements;
  __m512i codes[kGroups][4];
#pragma GCC unroll 2
  for (int g = 0; g < kGroups; ++g) {
    const std::byte* of_group = block.of_group(g);
    if (strip == 0 || block.requests.both)
      prefetch_strip<kType>(of_group + block.requests.ahead, strip);
    load_block_codes<kType>(of_group, strip, codes[g]);
  }
#pragma GCC unroll 4
  for (int quad = 0; quad < 4; ++quad) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i q = broadcast_word(x.q[r] + first + strip * kInt8Strip + quad * 4);
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g)
        sums[g][r] = _mm512_dpbusd_epi32(sums[g][r], codes[g][quad], q);
    }
  }
}

/// Computes the products of block b, an integer for each group and row.
template <TensorType kType, int kGroups, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
multiply_block(const ChunkBlock& block, const PassRows<kRows>& x, IntTile<kGroups, kRows>& sums) {
  constexpr GroupFormat kFormat = group_format(kType);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
    start_sums<kGroups, kRows>(
        kFormat.offset == 0
            ? _mm512_setzero_si512()
            : _mm512_madd_epi16(broadcast_word(x.sums[r] + block.b * 2),
                                _mm512_set1_epi16(static_cast<short>(-kFormat.offset))),
        r, sums);
#pragma GCC unroll 2
  for (std::uint32_t strip = 0; strip < 2; ++strip)
    add_chunk_strip<kType, kGroups, kRows>(block, strip, x, sums);
}

/// How many sums of a chunk stay in registers, beside the sums of a block and its factors. The
/// other sums are kept in memory.
template <int kSums>
inline constexpr int kKeptSums = std::min(kSums, 27 - kSums);

/// The offset of dot i of a pass from the pass's first dot.
template <int kRows>
constexpr std::size_t dot_at(int i) {
  return (i / kRows * kInt8TileRows + i % kRows) * kGroupRows;
}

/// The sums of the running chunk for some groups and rows.
template <int kGroups, int kRows>
struct ChunkSums {
  __m512 kept[kKeptSums<kGroups * kRows>];
  float* others;  ///< Laid out like the dots, from the first row of the pass on.
};

template <int kGroups, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
add_scaled(__m512 scale, __m512i product, int i, ChunkSums<kGroups, kRows>& chunk) {
  const __m512 factor = _mm512_cvtepi32_ps(product);
  if (i < kKeptSums<kGroups * kRows>)
    chunk.kept[i] = _mm512_fmadd_ps(scale, factor, chunk.kept[i]);
  else
    _mm512_store_ps(
        chunk.others + dot_at<kRows>(i),
        _mm512_fmadd_ps(scale, factor, _mm512_load_ps(chunk.others + dot_at<kRows>(i))));
}

/// Adds integers of row r, times the row's d and a factor of each matrix row.
template <int kGroups, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
add_row(const __m512 (&factors)[kGroups], float d, const __m512i (&integers)[2], int r,
        ChunkSums<kGroups, kRows>& chunk) {
#pragma GCC unroll 2
  for (int g = 0; g < kGroups; ++g)
    add_scaled<kGroups, kRows>(_mm512_mul_ps(factors[g], _mm512_set1_ps(d)), integers[g],
                               g * kRows + r, chunk);
}

/// Adds block b to the chunks.
template <TensorType kType, int kGroups, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
add_block(const ChunkBlock& block, const PassRows<kRows>& x, ChunkSums<kGroups, kRows>& chunk) {
  const std::size_t b = block.b;
  IntTile<kGroups, kRows> sums;
  multiply_block<kType, kGroups, kRows>(block, x, sums);
  __m512 factors[kGroups];
#pragma GCC unroll 2
  for (int g = 0; g < kGroups; ++g) factors[g] = load_scales<kType>(block.of_group(g));
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
    add_row<kGroups, kRows>(factors, x.scales[r][b], {sums[0][r], sums[kGroups - 1][r]}, r, chunk);
  if constexpr (group_format(kType).has_min) {
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) factors[g] = load_halves(block.of_group(g) + kGroupRows * 2);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i sum =
          _mm512_madd_epi16(broadcast_word(x.sums[r] + b * 2), _mm512_set1_epi16(1));
      add_row<kGroups, kRows>(factors, x.scales[r][b], {sum, sum}, r, chunk);
    }
  }
}

template <int kGroups, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
begin_chunk(ChunkSums<kGroups, kRows>& chunk) {
#pragma GCC unroll 16
  for (int i = 0; i < kGroups * kRows; ++i) {
    if (i < kKeptSums<kGroups * kRows>)
      chunk.kept[i] = _mm512_setzero_ps();
    else
      _mm512_store_ps(chunk.others + dot_at<kRows>(i), _mm512_setzero_ps());
  }
}

/// Sets the dots to the sums of the first chunk, or adds the sums of a later chunk.
template <int kGroups, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
add_to_dots(bool is_first_chunk, ChunkSums<kGroups, kRows>& chunk, float* out) {
#pragma GCC unroll 16
  for (int i = 0; i < kGroups * kRows; ++i) {
    float* dots = out + dot_at<kRows>(i);
    const __m512 sum = i < kKeptSums<kGroups * kRows>
                           ? chunk.kept[i]
                           : _mm512_load_ps(chunk.others + dot_at<kRows>(i));
    _mm512_storeu_ps(dots, is_first_chunk ? sum : _mm512_add_ps(_mm512_loadu_ps(dots), sum));
  }
}

template <int kRows>
[[gnu::always_inline]] inline PassRows<kRows> chunk_rows(const RoundedRow* first) {
  PassRows<kRows> x;
  x.terms = nullptr;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    x.q[r] = first[r].q;
    x.scales[r] = first[r].scale;
    x.sums[r] = first[r].sums;
  }
  return x;
}

/// Multiplies the chunks with rows from `first` on.
template <TensorType kType, int kGroups, int kRows>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] void run_chunks(
    const ChunkWork& shared, std::uint32_t first, Requests requests) {
  constexpr std::size_t kBlockBytes = group_format(kType).size_bytes();
  const ChunkWork work = shared;  // a copy, so that stores of dots do not alias it
  const PassRows<kRows> x = chunk_rows<kRows>(work.x + first);
  ChunkSums<kGroups, kRows> chunk;
  chunk.others = work.chunk[0][first];
  for (std::uint32_t begin = work.blocks.begin; begin < work.blocks.end; begin += work.per_chunk) {
    const std::uint32_t end = std::min(begin + work.per_chunk, work.blocks.end);
    begin_chunk<kGroups, kRows>(chunk);
    for (std::uint32_t b = begin; b < end; ++b) {
      // prefetch_strip adds kPrefetchBytes
      const std::size_t beyond =
          kGroups == 1 ? 0 : ahead_bytes(b * kBlockBytes, work.group_bytes) - kPrefetchBytes;
      add_block<kType, kGroups, kRows>({.at = work.groups + b * kBlockBytes,
                                        .group_bytes = work.group_bytes,
                                        .b = b,
                                        .requests = {requests.ahead + beyond, requests.both}},
                                       x, chunk);
    }
    add_to_dots<kGroups, kRows>(begin == 0, chunk, work.out[0][first]);
  }
}

/// The most rows of a pass.
inline constexpr std::uint32_t kMostChunkRows = 8;
/// The fewest rows of a pass. Two groups are multiplied together from this many rows on.
template <int kGroups>
inline constexpr std::uint32_t kLeastChunkRows = kGroups == 1 ? 1 : 4;
/// Bytes of blocks that stay in the L1 cache while all rows are multiplied, beside the rows and
/// the requested lines.
inline constexpr std::uint32_t kPassedBytes = 12288;

template <TensorType kType, int kGroups>
constexpr auto kRunChunks = []<int... kMore>(std::integer_sequence<int, kMore...>) {
  return std::array<RunChunks, sizeof...(kMore)>{
      run_chunks<kType, kGroups, kLeastChunkRows<kGroups> + kMore>...};
}(std::make_integer_sequence<int, kMostChunkRows - kLeastChunkRows<kGroups> + 1>());

/// Multiplies a few chunks with all rows before the next ones. Memory supplies these chunks once:
/// they stay in the L1 cache for later passes, while lines requested from memory arrive.
template <TensorType kType, int kGroups>
void dot_chunks(const std::byte* groups, const Int8Tile& tile, GroupDots* out) {
  const std::uint32_t n_blocks = tile.n_in / group_format(kType).elements;
  const std::uint32_t n_passes = tiles_for(tile.n_rows, kMostChunkRows);
  alignas(64) GroupDots chunk[kGroups];
  ChunkWork work{.x = tile.x,
                 .out = out,
                 .chunk = chunk,
                 .groups = groups,
                 .group_bytes = row_group_bytes(kType, tile.n_in),
                 .per_chunk = int8_chunk_blocks(n_blocks)};
  const std::uint32_t chunk_bytes = kGroups * work.per_chunk * group_format(kType).size_bytes();
  const std::uint32_t at_once =
      n_passes == 1 ? n_blocks : work.per_chunk * std::max(kPassedBytes / chunk_bytes, 1u);
  for (work.blocks.begin = 0; work.blocks.begin < n_blocks; work.blocks.begin = work.blocks.end) {
    work.blocks.end = std::min(work.blocks.begin + at_once, n_blocks);
    for (std::uint32_t i = 0; i < n_passes; ++i) {
      const std::uint32_t first = i * tile.n_rows / n_passes;
      const std::uint32_t size = (i + 1) * tile.n_rows / n_passes - first;
      kRunChunks<kType, kGroups>[size - kLeastChunkRows<kGroups>](
          work, first, {.ahead = i % 2 * strip_bytes(kType), .both = n_passes == 1});
    }
  }
}

}  // namespace leasehold::avx512
