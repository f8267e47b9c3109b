/// Attention of the CPU backend. A step is processed in *waves* of rows whose partials fit the
/// scratch. The unit that computes the last partial of a row and head merges them, in the written
/// order. A wave with long contexts merges in a separate launch.
#include <algorithm>
#include <memory>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/cpu/tiling.hpp"

namespace leasehold {

/// Rows [first_row, first_row + n_rows). The partials of row i of the wave are at
/// [first_partial_[i], first_partial_[i + 1]), laid out as [n_heads, partitions of the row].
struct CpuBackend::AttentionWave {
  std::uint32_t first_row;
  std::uint32_t n_rows;
  std::uint32_t n_partials;
  std::uint32_t most_partitions;  ///< The most partitions of any row.

  /// True if merging the queries of a unit takes at most a quarter of the unit's time.
  bool merges_in_units(std::uint32_t head_dim) const {
    return std::uint64_t{kMaxTileQueries} * most_partitions * (head_dim + kMacsPerExp) <=
           kTileMacs / 4;
  }
};

CpuBackend::AttentionWave CpuBackend::next_wave(const LaunchContext& context,
                                                const AttentionArgs& args,
                                                std::uint32_t first_row) {
  AttentionWave wave{.first_row = first_row, .n_rows = 0, .n_partials = 0, .most_partitions = 0};
  first_partial_[0] = 0;
  for (std::size_t r = first_row; r < context.rows.size(); ++r) {
    const std::uint32_t n_partitions = partition_count(context.rows[r].position + 1);
    const std::uint32_t more = args.n_heads * n_partitions;
    if (wave.n_partials + more > max_partials_) break;
    // Relaxed: the launch publishes the counts.
    for (std::uint32_t head = 0; head < args.n_heads; ++head)
      partitions_left_[wave.n_rows * args.n_heads + head].store(n_partitions,
                                                                std::memory_order_relaxed);
    wave.n_partials += more;
    wave.most_partitions = std::max(wave.most_partitions, n_partitions);
    first_partial_[++wave.n_rows] = wave.n_partials;
  }
  used_partials_ = std::max<std::size_t>(used_partials_, wave.n_partials);
  return wave;
}

/// Cuts one partition of rows [first, end) of a sequence into tiles. Neighbouring tiles read the
/// same keys and values, so memory supplies these once and the cache afterwards.
void CpuBackend::add_tiles(const LaunchContext& context, const AttentionArgs& args,
                           std::uint32_t first, std::uint32_t end, std::uint32_t partition) {
  const std::uint32_t group = args.n_heads / args.layout.n_kv_heads;
  const std::uint32_t queries = (end - first) * group;
  const std::uint32_t most_positions = std::min(
      kPartitionPositions, context.rows[end - 1].position + 1 - partition * kPartitionPositions);
  const std::uint64_t macs_each =
      std::uint64_t{most_positions} * (2 * args.layout.head_dim + kMacsPerExp);
  const std::uint32_t most = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(kernels_.attend_tile_macs / macs_each, 1, kMaxTileQueries));
  const std::uint32_t per_tile =
      (queries + tiles_for(queries, most) - 1) / tiles_for(queries, most);
  for (std::uint32_t kv_head = 0; kv_head < args.layout.n_kv_heads; ++kv_head)
    for (std::uint32_t at = 0; at < queries; at += per_tile)
      attention_tiles_.push_back({.first_row = first,
                                  .first_query = at,
                                  .n_queries = std::min(per_tile, queries - at),
                                  .kv_head = kv_head,
                                  .partition = partition});
}

void CpuBackend::plan_tiles(const LaunchContext& context, const AttentionArgs& args,
                            const AttentionWave& wave) {
  attention_tiles_.clear();
  const std::uint32_t wave_end = wave.first_row + wave.n_rows;
  for (std::uint32_t first = wave.first_row, end = first; first < wave_end; first = end) {
    while (end < wave_end && context.rows[end].sequence == context.rows[first].sequence) ++end;
    const std::uint32_t last_position = context.rows[end - 1].position;
    for (std::uint32_t p = 0; p < partition_count(last_position + 1); ++p) {
      const std::uint32_t begin = p * kPartitionPositions;
      const std::uint32_t position = context.rows[first].position;
      add_tiles(context, args, first + (begin > position ? begin - position : 0), end, p);
    }
  }
}

/// Fills in the queries of a tile: rows of one sequence, and for each row the heads of one kv head.
void CpuBackend::place_queries(const LaunchContext& context, const AttentionArgs& args,
                               const AttentionWave& wave, const AttentionTilePlan& plan,
                               AttentionTile& tile) {
  const std::uint32_t head_dim = args.layout.head_dim;
  const std::uint32_t group = args.n_heads / args.layout.n_kv_heads;
  for (std::uint32_t i = 0; i < plan.n_queries; ++i) {
    const std::uint32_t r = plan.first_row + (plan.first_query + i) / group;
    const std::uint32_t head = plan.kv_head * group + (plan.first_query + i) % group;
    const std::uint32_t n_positions = context.rows[r].position + 1;
    const std::size_t partial = first_partial_[r - wave.first_row] +
                                std::size_t{head} * partition_count(n_positions) + plan.partition;
    tile.q[i] = args.q + (std::size_t{r} * args.n_heads + head) * head_dim;
    tile.partial[i] = partials_.data() + partial * partial_floats(head_dim);
    tile.n_positions[i] =
        std::min(kPartitionPositions, n_positions - plan.partition * kPartitionPositions);
  }
  tile.n_queries = plan.n_queries;
}

float* CpuBackend::tile_scratch(std::uint32_t thread) {
  void* at = tile_scratch_.data() + thread * tile_scratch_stride_;
  std::size_t space = 2 * tile_scratch_stride_ * sizeof(float);
  return static_cast<float*>(std::align(kCacheLineBytes, sizeof(float), at, space));
}

LaunchStatus CpuBackend::score_wave(const LaunchContext& context, const AttentionArgs& args,
                                    const AttentionWave& wave) {
  const KvLayout& layout = args.layout;
  plan_tiles(context, args, wave);
  const auto score = [&](const LaunchPermit& permit, std::uint32_t thread, std::uint32_t index) {
    const AttentionTilePlan& plan = attention_tiles_[index];
    const std::uint32_t sequence = context.rows[plan.first_row].sequence;
    if (!permit.is_live(sequence)) return;
    AttentionTile tile{};
    place_queries(context, args, wave, plan, tile);
    tile.head_dim = layout.head_dim;
    tile.scale = args.scale;
    tile.type = layout.type;
    tile.scores = tile_scratch(thread);
    tile.block = tile.scores + std::size_t{kMaxTileQueries} * kPartitionPositions;
    tile.scales = tile.block + std::size_t{kWidenedPositions} * layout.head_dim;
    const std::uint32_t most = tile.n_positions[plan.n_queries - 1];
    for (std::uint32_t b = 0; b * KvLayout::kBlockTokens < most; ++b) {
      const std::byte* block =
          permit.open(args.block_tables[sequence][plan.partition * kPartitionBlocks + b]);
      tile.keys[b] = block + layout.head_offset_bytes(context.layer, 0, plan.kv_head);
      tile.values[b] = block + layout.head_offset_bytes(context.layer, 1, plan.kv_head);
    }
    kernels_.attend(tile);
    if (wave.merges_in_units(layout.head_dim)) merge_complete(context, args, wave, plan);
  };
  return launcher_.run(context, label(context, LaunchSite::AttentionScores, Touches::TenantMemory),
                       static_cast<std::uint32_t>(attention_tiles_.size()), score);
}

void CpuBackend::merge_head(const LaunchContext& context, const AttentionArgs& args,
                            const AttentionWave& wave, std::uint32_t r, std::uint32_t head) {
  const std::uint32_t head_dim = args.layout.head_dim;
  const std::uint32_t n_partitions = partition_count(context.rows[r].position + 1);
  const std::size_t first = first_partial_[r - wave.first_row] + std::size_t{head} * n_partitions;
  kernels_.merge(partials_.data() + first * partial_floats(head_dim), n_partitions, head_dim,
                 args.out + (std::size_t{r} * args.n_heads + head) * head_dim);
}

/// Merges those queries of the tile whose other partitions are computed.
void CpuBackend::merge_complete(const LaunchContext& context, const AttentionArgs& args,
                                const AttentionWave& wave, const AttentionTilePlan& plan) {
  const std::uint32_t group = args.n_heads / args.layout.n_kv_heads;
  for (std::uint32_t i = 0; i < plan.n_queries; ++i) {
    const std::uint32_t r = plan.first_row + (plan.first_query + i) / group;
    const std::uint32_t head = plan.kv_head * group + (plan.first_query + i) % group;
    // Each decrement releases its partial, and the last one acquires all of them.
    const bool is_last = partitions_left_[(r - wave.first_row) * args.n_heads + head].fetch_sub(
                             1, std::memory_order_acq_rel) == 1;
    if (is_last) merge_head(context, args, wave, r, head);
  }
}

LaunchStatus CpuBackend::merge_wave(const LaunchContext& context, const AttentionArgs& args,
                                    const AttentionWave& wave) {
  const std::uint32_t n_heads = args.n_heads;
  const std::uint32_t items = wave.n_rows * n_heads;
  const std::uint64_t partials_each = (wave.n_partials + items - 1) / items;
  const std::uint32_t per_tile =
      items_per_tile(partials_each * (args.layout.head_dim + kMacsPerExp));
  return launcher_.run(context, label(context, LaunchSite::AttentionMerge),
                       tiles_for(items, per_tile),
                       [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
                         const Span32 span = tile_span(tile, per_tile, items);
                         for (std::uint32_t i = span.begin; i < span.end; ++i) {
                           const std::uint32_t r = wave.first_row + i / n_heads;
                           if (permit.is_live(context.rows[r].sequence))
                             merge_head(context, args, wave, r, i % n_heads);
                         }
                       });
}

LaunchStatus CpuBackend::attention(const LaunchContext& context, const AttentionArgs& args) {
  expect_within_limits(limits_, context, args);
  SequenceMask live = context.gates->all();
  for (std::uint32_t row = 0; row < context.rows.size() && live != 0;) {
    const AttentionWave wave = next_wave(context, args, row);
    live &= score_wave(context, args, wave).live;
    if (live != 0 && !wave.merges_in_units(args.layout.head_dim))
      live &= merge_wave(context, args, wave).live;
    row += wave.n_rows;
  }
  return {live};
}

}  // namespace leasehold
