/// The steps of an attention tile, the same for every SIMD path: score each key, exponentiate,
/// weigh each value. A path supplies the arithmetic as `Ops`, in the order of
/// kernels/numerics/attention_order.hpp:
///
///   widen(from, n, to)        n halves as floats in `to`
///   widen_codes(q, scales, n, to)     n elements of Q8_0, with widened scales
///   kWidensKeys               true if score_block takes floats only, not also halves
///   score_block(tile, keys, query, at)     16 scores from position `at` on, of some queries from
///                             `query` on; returns the number of queries scored
///   softcap(scores, n, cap)   caps n scores
///   softmax(scores, n, partial)     turns scores into weights; the scores from n on are undefined
///   weigh<Kv>(tile, run)      adds weighted values to the accumulators of `run`
///   kRunQueries               the most queries of a run
///
/// These functions are not inlined into callers with another instruction set: Ops has the target
/// attributes.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "ipc/segment/segment_layout.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "kernels/numerics/f16.hpp"
#include "kernels/numerics/ordered_sum.hpp"

namespace leasehold {

/// A run of queries in a tile, and the positions whose values all these queries weigh.
struct WeighRun {
  std::uint32_t first_query;
  std::uint32_t n_queries;
  std::uint32_t begin;
  std::uint32_t end;
};

/// [value_dim]: the value at position i of the tile's partition.
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

/// Widens the keys or values of a block of Q8_0 into `to`.
template <class Ops>
const float* widen_block(const AttentionTile& tile, const std::byte* head, float* to) {
  widen_scales<Ops>(head, tile.head_dim, tile.scales);
  Ops::widen_codes(reinterpret_cast<const std::int8_t*>(head), tile.scales,
                   KvLayout::kBlockTokens * tile.head_dim, to);
  return to;
}

/// The keys of a block as score_block takes them: as stored, or widened into the tile's scratch.
template <class Ops, class Kv>
auto keys_of_block(const AttentionTile& tile, const std::byte* head) {
  if constexpr (kHasScales<Kv>) {
    return widen_block<Ops>(tile, head, tile.block);
  } else {
    const auto* stored = reinterpret_cast<const Kv*>(head);
    if constexpr (std::is_same_v<Kv, Half> && Ops::kWidensKeys)
      return Ops::widen(stored, KvLayout::kBlockTokens * tile.head_dim, tile.block);
    else
      return stored;
  }
}

/// Scores whole blocks, from the first one that a query reads on. Positions after a query's own and
/// before its window get scores too; softmax drops them.
template <class Ops, class Kv>
void score_keys(const AttentionTile& tile) {
  const std::uint32_t most = tile.n_positions[tile.n_queries - 1];
  const std::uint32_t first = tile.n_skipped[0] / KvLayout::kBlockTokens * KvLayout::kBlockTokens;
  for (std::uint32_t at = first; at < most; at += KvLayout::kBlockTokens) {
    if (at + KvLayout::kBlockTokens < most)
      prefetch_head<Kv>(tile.keys[at / KvLayout::kBlockTokens + 1], tile.head_dim);
    prefetch_head<Kv>(tile.values[at / KvLayout::kBlockTokens], tile.head_dim);
    const auto* keys = keys_of_block<Ops, Kv>(tile, tile.keys[at / KvLayout::kBlockTokens]);
    std::uint32_t query = 0;
    while (tile.n_positions[query] <= at) ++query;  // the last query has a score in every block
    while (query < tile.n_queries) query += Ops::score_block(tile, keys, query, at);
  }
}

/// Each query weighs its own values among positions [begin, end) alone.
template <class Ops, class Kv>
void weigh_alone(const AttentionTile& tile, std::uint32_t begin, std::uint32_t end) {
  for (std::uint32_t query = 0; query < tile.n_queries; ++query) {
    const std::uint32_t from = std::max(tile.n_skipped[query], begin);
    const std::uint32_t to = std::min(tile.n_positions[query], end);
    if (from < to)
      Ops::template weigh<Kv>(tile,
                              {.first_query = query, .n_queries = 1, .begin = from, .end = to});
  }
}

/// Weighs the values at positions [begin, end), in ascending order for each query. Queries weigh
/// their common positions together and the others alone: no query reads the value of a position
/// after its own, which may be a NaN, or before its window.
template <class Ops, class Kv>
void weigh_span(const AttentionTile& tile, std::uint32_t begin, std::uint32_t end) {
  const std::uint32_t from = std::clamp(tile.n_skipped[tile.n_queries - 1], begin, end);
  const std::uint32_t to = std::max(from, std::clamp(tile.n_positions[0], begin, end));
  weigh_alone<Ops, Kv>(tile, begin, from);
  for (std::uint32_t first = 0; from < to && first < tile.n_queries; first += Ops::kRunQueries)
    Ops::template weigh<Kv>(tile, {.first_query = first,
                                   .n_queries = std::min(Ops::kRunQueries, tile.n_queries - first),
                                   .begin = from,
                                   .end = to});
  weigh_alone<Ops, Kv>(tile, to, end);
}

/// Blocks of Q8_0 are widened once for all queries.
template <class Ops, class Kv>
void weigh_values(const AttentionTile& tile) {
  const std::uint32_t most = tile.n_positions[tile.n_queries - 1];
  for (std::uint32_t query = 0; query < tile.n_queries; ++query)
    std::fill_n(tile.partial[query] + kPartialAcc, tile.value_dim, 0.0F);
  if constexpr (kHasScales<Kv>) {
    AttentionTile wide = tile;
    const std::uint32_t first = tile.n_skipped[0] / KvLayout::kBlockTokens * KvLayout::kBlockTokens;
    for (std::uint32_t begin = first; begin < most; begin += kWidenedPositions) {
      const std::uint32_t end = std::min(begin + kWidenedPositions, most);
      for (std::uint32_t at = begin; at < end; at += KvLayout::kBlockTokens) {
        float* to = tile.block + std::size_t{at - begin} * tile.head_dim;
        const std::byte*& values = wide.values[at / KvLayout::kBlockTokens];
        values = reinterpret_cast<const std::byte*>(widen_block<Ops>(tile, values, to));
      }
      weigh_span<Ops, float>(wide, begin, end);
    }
  } else {
    weigh_span<Ops, Kv>(tile, 0, most);
  }
}

/// Turns the scores of a query into weights. Scores before the window become -inf, whose
/// exponential is exactly 0, from a multiple of the lanes on, so that the others keep their lanes.
template <class Ops>
void weigh_scores(const AttentionTile& tile, std::uint32_t query) {
  float* const scores = weights_of(tile, query);
  const std::uint32_t skipped = tile.n_skipped[query];
  const std::uint32_t n = tile.n_positions[query];
  if (tile.softcap > 0) Ops::softcap(scores + skipped, n - skipped, tile.softcap);
  const std::uint32_t from = skipped / kSumLanes * kSumLanes;
  std::fill(scores + from, scores + skipped, -std::numeric_limits<float>::infinity());
  Ops::softmax(scores + from, n - from, tile.partial[query]);
}

template <class Ops, class Kv>
void attend_as(const AttentionTile& tile) {
  score_keys<Ops, Kv>(tile);
  for (std::uint32_t query = 0; query < tile.n_queries; ++query) weigh_scores<Ops>(tile, query);
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
