/// The steps of an attention tile, the same for every SIMD path: score each key, exponentiate,
/// weigh each value. A path supplies the arithmetic as `Ops`, in the order of
/// kernels/numerics/attention_order.hpp:
///
///   widen(from, n, to)        n elements as floats: `to`, or `from` if they are floats
///   widen_codes(q, scales, n, to)     n elements of Q8_0, with widened scales
///   score_block(tile, keys, query, at)     16 scores from position `at` on, of some queries from
///                             `query` on; returns the number of queries scored
///   softmax(scores, n, partial)     turns scores into weights; the scores from n on are undefined
///   weigh<Kv>(tile, run)      adds weighted values to the accumulators of `run`
///   kRunQueries               the most queries of a run
///
/// These functions are not inlined into callers with another instruction set: Ops has the target
/// attributes.
#pragma once

#include <algorithm>
#include <type_traits>

#include "ipc/segment/segment_layout.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "kernels/numerics/f16.hpp"

namespace leasehold {

/// A run of queries in a tile, and the positions whose values all these queries weigh.
struct WeighRun {
  std::uint32_t first_query;
  std::uint32_t n_queries;
  std::uint32_t begin;
  std::uint32_t end;
};

/// [head_dim]: the value at position i of the tile's partition.
template <class Kv>
const Kv* value_at(const AttentionTile& tile, std::uint32_t i) {
  return reinterpret_cast<const Kv*>(tile.values[i / KvLayout::kBlockTokens]) +
         std::size_t{i % KvLayout::kBlockTokens} * tile.head_dim;
}

/// True for codes of Q8_0, whose scales are stored separately.
template <class Kv>
inline constexpr bool kHasScales = std::is_same_v<Kv, std::int8_t>;

inline float* weights_of(const AttentionTile& tile, std::uint32_t query) {
  return tile.scores + std::size_t{query} * kPartitionPositions;
}

/// Requests a head of a block from memory.
template <class Kv>
void prefetch_head(const std::byte* head, std::uint32_t head_dim) {
  const std::uint32_t scales_bytes =
      kHasScales<Kv> ? head_dim / kKvScaleBlock * std::uint32_t{sizeof(Half)} : 0;
  const std::uint32_t size =
      KvLayout::kBlockTokens * (head_dim * std::uint32_t{sizeof(Kv)} + scales_bytes);
  for (std::size_t at = 0; at < size; at += kCacheLineBytes) __builtin_prefetch(head + at);
}

/// Widens the scales of a head of a block of Q8_0: [kBlockTokens, head_dim / kKvScaleBlock].
template <class Ops>
void widen_scales(const std::byte* head, std::uint32_t head_dim, float* to) {
  const std::byte* scales = head + std::size_t{KvLayout::kBlockTokens} * head_dim;
  Ops::widen(reinterpret_cast<const Half*>(scales),
             KvLayout::kBlockTokens * head_dim / kKvScaleBlock, to);
}

/// Returns the keys or values of a block as floats, in `to` unless they are stored as floats.
template <class Ops, class Kv>
const float* widen_block(const AttentionTile& tile, const std::byte* head, float* to) {
  const auto* stored = reinterpret_cast<const Kv*>(head);
  const std::uint32_t n = KvLayout::kBlockTokens * tile.head_dim;
  if constexpr (kHasScales<Kv>) {
    widen_scales<Ops>(head, tile.head_dim, tile.scales);
    Ops::widen_codes(stored, tile.scales, n, to);
    return to;
  } else {
    return Ops::widen(stored, n, to);
  }
}

/// Scores whole blocks. Positions after a query's own get scores too; softmax drops them.
template <class Ops, class Kv>
void score_keys(const AttentionTile& tile) {
  const std::uint32_t most = tile.n_positions[tile.n_queries - 1];
  for (std::uint32_t at = 0; at < most; at += KvLayout::kBlockTokens) {
    if (at + KvLayout::kBlockTokens < most)
      prefetch_head<Kv>(tile.keys[at / KvLayout::kBlockTokens + 1], tile.head_dim);
    prefetch_head<Kv>(tile.values[at / KvLayout::kBlockTokens], tile.head_dim);
    const float* keys =
        widen_block<Ops, Kv>(tile, tile.keys[at / KvLayout::kBlockTokens], tile.block);
    std::uint32_t query = 0;
    while (tile.n_positions[query] <= at) ++query;  // the last query has a score in every block
    while (query < tile.n_queries) query += Ops::score_block(tile, keys, query, at);
  }
}

/// Weighs the values at positions [begin, end). Queries weigh their common positions together, then
/// each query weighs its remaining positions alone: no query reads the value of a later position,
/// which may be a NaN.
template <class Ops, class Kv>
void weigh_span(const AttentionTile& tile, std::uint32_t begin, std::uint32_t end) {
  const std::uint32_t common = std::clamp(tile.n_positions[0], begin, end);
  for (std::uint32_t first = 0; common > begin && first < tile.n_queries; first += Ops::kRunQueries)
    Ops::template weigh<Kv>(tile, {.first_query = first,
                                   .n_queries = std::min(Ops::kRunQueries, tile.n_queries - first),
                                   .begin = begin,
                                   .end = common});
  for (std::uint32_t query = 0; query < tile.n_queries; ++query)
    if (const std::uint32_t own = std::min(tile.n_positions[query], end); own > common)
      Ops::template weigh<Kv>(tile,
                              {.first_query = query, .n_queries = 1, .begin = common, .end = own});
}

/// Blocks of Q8_0 are widened once for all queries.
template <class Ops, class Kv>
void weigh_values(const AttentionTile& tile) {
  const std::uint32_t most = tile.n_positions[tile.n_queries - 1];
  for (std::uint32_t query = 0; query < tile.n_queries; ++query)
    std::fill_n(tile.partial[query] + kPartialAcc, tile.head_dim, 0.0F);
  if constexpr (kHasScales<Kv>) {
    AttentionTile wide = tile;
    for (std::uint32_t begin = 0; begin < most; begin += kWidenedPositions) {
      const std::uint32_t end = std::min(begin + kWidenedPositions, most);
      for (std::uint32_t at = begin; at < end; at += KvLayout::kBlockTokens) {
        float* to = tile.block + std::size_t{at - begin} * tile.head_dim;
        const std::byte*& values = wide.values[at / KvLayout::kBlockTokens];
        values = reinterpret_cast<const std::byte*>(widen_block<Ops, Kv>(tile, values, to));
      }
      weigh_span<Ops, float>(wide, begin, end);
    }
  } else {
    weigh_span<Ops, Kv>(tile, 0, most);
  }
}

template <class Ops, class Kv>
void attend_as(const AttentionTile& tile) {
  score_keys<Ops, Kv>(tile);
  for (std::uint32_t query = 0; query < tile.n_queries; ++query)
    Ops::softmax(weights_of(tile, query), tile.n_positions[query], tile.partial[query]);
  weigh_values<Ops, Kv>(tile);
}

template <class Ops>
void attend_with(const AttentionTile& tile) {
  switch (tile.type) {
    case KvType::F32:
      return attend_as<Ops, float>(tile);
    case KvType::F16:
      return attend_as<Ops, Half>(tile);
    case KvType::Q8_0:
      return attend_as<Ops, std::int8_t>(tile);
  }
}

}  // namespace leasehold
