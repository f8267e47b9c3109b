/// The steps of an attention tile, the same for every SIMD path: score each key, exponentiate,
/// weigh each value. A path supplies the arithmetic as `Ops`, in the order of
/// kernels/numerics/attention_order.hpp:
///
///   widen(from, n, to)        n elements as floats: `to`, or `from` if they are floats
///   score_block(keys, q, head_dim, scale, scores)     16 scores
///   softmax(scores, n, partial)     scores become weights; those from n on are undefined before
///   weigh<Kv>(tile, run)      adds weighted values to the accumulators of `run`
///   kRunQueries               the most queries of a run
///
/// Not inline in callers with another instruction set: Ops has the target attributes.
#pragma once

#include <algorithm>

#include "kernels/cpu/row_kernels.hpp"
#include "kernels/numerics/f16.hpp"

namespace leasehold {

/// Some queries of a tile, and the positions whose values all of them weigh.
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

inline float* weights_of(const AttentionTile& tile, std::uint32_t query) {
  return tile.scores + std::size_t{query} * kPartitionPositions;
}

/// Requests a head's entries of a block from memory.
template <class Kv>
void prefetch_entries(const std::byte* entries, std::uint32_t head_dim) {
  constexpr std::uint32_t kLineBytes = 64;
  for (std::uint32_t at = 0; at < KvLayout::kBlockTokens * head_dim * sizeof(Kv); at += kLineBytes)
    __builtin_prefetch(entries + at);
}

/// Scores whole blocks. Positions after a query's own get scores too; softmax drops them.
template <class Ops, class Kv>
void score_keys(const AttentionTile& tile) {
  const std::uint32_t most = tile.n_positions[tile.n_queries - 1];
  for (std::uint32_t at = 0; at < most; at += KvLayout::kBlockTokens) {
    if (at + KvLayout::kBlockTokens < most)
      prefetch_entries<Kv>(tile.keys[at / KvLayout::kBlockTokens + 1], tile.head_dim);
    prefetch_entries<Kv>(tile.values[at / KvLayout::kBlockTokens], tile.head_dim);
    const auto* stored = reinterpret_cast<const Kv*>(tile.keys[at / KvLayout::kBlockTokens]);
    const float* keys = Ops::widen(stored, KvLayout::kBlockTokens * tile.head_dim, tile.block);
    for (std::uint32_t query = 0; query < tile.n_queries; ++query)
      if (at < tile.n_positions[query])
        Ops::score_block(keys, tile.q[query], tile.head_dim, tile.scale,
                         weights_of(tile, query) + at);
  }
}

/// Queries weigh their common positions together, then each weighs the rest of its own: no query
/// reads the value of a later position, which may be a NaN.
template <class Ops, class Kv>
void weigh_values(const AttentionTile& tile) {
  const std::uint32_t common = tile.n_positions[0];
  for (std::uint32_t query = 0; query < tile.n_queries; ++query)
    std::fill_n(tile.partial[query] + kPartialAcc, tile.head_dim, 0.0F);
  for (std::uint32_t first = 0; first < tile.n_queries; first += Ops::kRunQueries)
    Ops::template weigh<Kv>(tile, {.first_query = first,
                                   .n_queries = std::min(Ops::kRunQueries, tile.n_queries - first),
                                   .begin = 0,
                                   .end = common});
  for (std::uint32_t query = 0; query < tile.n_queries; ++query)
    if (tile.n_positions[query] > common)
      Ops::template weigh<Kv>(
          tile,
          {.first_query = query, .n_queries = 1, .begin = common, .end = tile.n_positions[query]});
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
  if (tile.type == KvType::F32) return attend_as<Ops, float>(tile);
  attend_as<Ops, Half>(tile);
}

}  // namespace leasehold
