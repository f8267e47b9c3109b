#include "kernels/cpu/cpu_attention.hpp"

#include <algorithm>
#include <memory>

namespace leasehold {
namespace {

/// The number of partials of the largest step, limited by the scratch budget, but at least that of
/// one row.
std::size_t partials_per_wave(const BackendLimits& limits) {
  const std::size_t per_row = std::size_t{limits.n_heads} * partition_count(limits.max_context);
  const std::size_t affordable =
      limits.attention_scratch_bytes / (partial_floats(limits.head_dim) * sizeof(float));
  return std::max(per_row, std::min(per_row * limits.max_rows, affordable));
}

/// Rounded up to whole cache lines, so that the aligned scratch of two threads does not overlap.
std::size_t tile_scratch_floats(std::uint32_t head_dim) {
  constexpr std::size_t kLine = kCacheLineBytes / sizeof(float);
  const std::size_t floats = kMaxTileQueries * kPartitionPositions +
                             std::size_t{kWidenedPositions} * head_dim +
                             std::size_t{KvLayout::kBlockTokens} * head_dim / kKvScaleBlock;
  return (floats + kLine - 1) / kLine * kLine;
}

}  // namespace

/// Rows [first_row, first_row + n_rows). The partials of row i of the wave are at
/// [first_partial_[i], first_partial_[i + 1]), laid out as [n_heads, partitions of the row].
struct CpuAttention::Wave {
  const LaunchContext& context;
  const AttentionArgs& args;
  std::uint32_t first_row;
  std::uint32_t n_rows = 0;
  std::uint32_t n_partials = 0;
  std::uint32_t most_partitions = 0;  ///< The most partitions of any row.

  const RowRef& row(std::uint32_t r) const { return context.rows[r]; }
  PartitionRange partitions(std::uint32_t r) const {
    return partitions_read(row(r).position, args.window);
  }
  std::uint32_t heads_per_kv_head() const { return args.n_heads / args.layout.n_kv_heads; }
  /// True if merging the queries of a unit takes at most a quarter of the unit's time.
  bool merges_in_units() const {
    return std::uint64_t{kMaxTileQueries} * most_partitions *
               (args.layout.value_dim() + kMacsPerExp) <=
           kTileMacs / 4;
  }
};

CpuAttention::CpuAttention(CpuResources& cpu)
    : cpu_(cpu),
      max_partials_(partials_per_wave(cpu.limits)),
      partials_(max_partials_ * partial_floats(cpu.limits.head_dim)),
      first_partial_(cpu.limits.max_rows + 1),
      partitions_left_(std::size_t{cpu.limits.max_rows} * cpu.limits.n_heads),
      tile_scratch_stride_(tile_scratch_floats(cpu.limits.head_dim)),
      tile_scratch_(tile_scratch_stride_ * (1 + cpu.launcher.threads())) {
  tiles_.reserve(max_partials_);
}

CpuAttention::Query CpuAttention::query_of(const Wave& wave, const TilePlan& plan,
                                           std::uint32_t i) {
  const std::uint32_t group = wave.heads_per_kv_head();
  const std::uint32_t at = plan.first_query + i;
  return {.row = plan.first_row + at / group, .head = plan.kv_head * group + at % group};
}

CpuAttention::Wave CpuAttention::next_wave(const LaunchContext& context, const AttentionArgs& args,
                                           std::uint32_t first_row) {
  Wave wave{.context = context, .args = args, .first_row = first_row};
  first_partial_[0] = 0;
  for (std::size_t r = first_row; r < context.rows.size(); ++r) {
    const std::uint32_t n_partitions = wave.partitions(static_cast<std::uint32_t>(r)).count;
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
void CpuAttention::add_tiles(const Wave& wave, std::uint32_t first, std::uint32_t end,
                             std::uint32_t partition) {
  const KvLayer& layout = wave.args.layout;
  const std::uint32_t queries = (end - first) * wave.heads_per_kv_head();
  const std::uint32_t most_positions =
      std::min(kPartitionPositions,
               wave.row(end - 1).position + 1 - partition * kPartitionPositions) -
      positions_skipped(wave.row(first).position, wave.args.window, partition);
  const std::uint64_t macs_each =
      std::uint64_t{most_positions} * (layout.head_dim + layout.value_dim() + kMacsPerExp);
  const std::uint32_t most = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(cpu_.kernels.attend_tile_macs / macs_each, 1, kMaxTileQueries));
  const std::uint32_t per_tile =
      (queries + tiles_for(queries, most) - 1) / tiles_for(queries, most);
  for (std::uint32_t kv_head = 0; kv_head < layout.n_kv_heads; ++kv_head)
    for (std::uint32_t at = 0; at < queries; at += per_tile)
      tiles_.push_back({.first_row = first,
                        .first_query = at,
                        .n_queries = std::min(per_tile, queries - at),
                        .kv_head = kv_head,
                        .partition = partition});
}

void CpuAttention::plan_tiles(const Wave& wave) {
  tiles_.clear();
  const std::uint32_t wave_end = wave.first_row + wave.n_rows;
  for (std::uint32_t first = wave.first_row, end = first; first < wave_end; first = end) {
    while (end < wave_end && wave.row(end).sequence == wave.row(first).sequence) ++end;
    const std::uint32_t position = wave.row(first).position;
    const std::uint32_t last = wave.row(end - 1).position / kPartitionPositions;
    for (std::uint32_t p = wave.partitions(first).first; p <= last; ++p) {
      const std::uint32_t begin = p * kPartitionPositions;
      std::uint32_t readers_end = end;
      while (wave.partitions(readers_end - 1).first > p) --readers_end;
      add_tiles(wave, first + (begin > position ? begin - position : 0), readers_end, p);
    }
  }
}

float* CpuAttention::partials_of(const Wave& wave, Query query) {
  const std::size_t first = first_partial_[query.row - wave.first_row] +
                            std::size_t{query.head} * wave.partitions(query.row).count;
  return partials_.data() + first * partial_floats(wave.args.layout.value_dim());
}

/// Fills in the queries of a tile: rows of one sequence, and for each row the heads of one kv head.
void CpuAttention::place_queries(const Wave& wave, const TilePlan& plan, AttentionTile& tile) {
  const KvLayer& layout = wave.args.layout;
  for (std::uint32_t i = 0; i < plan.n_queries; ++i) {
    const Query query = query_of(wave, plan, i);
    const std::size_t at = std::size_t{query.row} * wave.args.n_heads + query.head;
    tile.q[i] = wave.args.q + at * layout.head_dim;
    const std::uint32_t position = wave.row(query.row).position;
    const std::size_t of_row = plan.partition - wave.partitions(query.row).first;
    tile.partial[i] = partials_of(wave, query) + of_row * partial_floats(layout.value_dim());
    tile.n_skipped[i] = positions_skipped(position, wave.args.window, plan.partition);
    tile.n_positions[i] =
        std::min(kPartitionPositions, position + 1 - plan.partition * kPartitionPositions);
  }
  tile.n_queries = plan.n_queries;
}

/// Scratch of a thread's tile, at the start of a cache line: a load that crosses lines takes twice
/// as long.
float* CpuAttention::tile_scratch(std::uint32_t thread) {
  void* at = tile_scratch_.data() + thread * tile_scratch_stride_;
  std::size_t space = 2 * tile_scratch_stride_ * sizeof(float);
  return static_cast<float*>(std::align(kCacheLineBytes, sizeof(float), at, space));
}

LaunchStatus CpuAttention::score(const Wave& wave) {
  const KvLayer& layout = wave.args.layout;
  plan_tiles(wave);
  const auto score_tile = [&](const LaunchPermit& permit, std::uint32_t thread,
                              std::uint32_t index) {
    const TilePlan& plan = tiles_[index];
    const std::uint32_t sequence = wave.row(plan.first_row).sequence;
    if (!permit.is_live(sequence)) return;
    AttentionTile tile{};
    place_queries(wave, plan, tile);
    tile.head_dim = layout.head_dim;
    tile.value_dim = layout.value_dim();
    tile.scale = wave.args.scale;
    tile.softcap = wave.args.softcap;
    tile.type = layout.type;
    tile.scores = tile_scratch(thread);
    tile.block = tile.scores + std::size_t{kMaxTileQueries} * kPartitionPositions;
    tile.scales = tile.block + std::size_t{kWidenedPositions} * layout.head_dim;
    const std::uint32_t most = tile.n_positions[plan.n_queries - 1];
    for (std::uint32_t b = tile.n_skipped[0] / KvLayout::kBlockTokens;
         b * KvLayout::kBlockTokens < most; ++b) {
      const std::byte* block =
          permit.open(wave.args.block_tables[sequence][plan.partition * kPartitionBlocks + b]);
      tile.keys[b] = block + layout.head_offset_bytes(0, plan.kv_head);
      tile.values[b] = block + layout.head_offset_bytes(1, plan.kv_head);
    }
    cpu_.kernels.attend(tile);
    if (wave.merges_in_units()) merge_complete(permit, wave, plan);
  };
  return cpu_.launcher.run(wave.context,
                           label(wave.context, LaunchSite::AttentionScores, Touches::TenantMemory),
                           static_cast<std::uint32_t>(tiles_.size()), score_tile);
}

void CpuAttention::merge_query(const LaunchPermit& permit, const Wave& wave, Query query) {
  const AttentionArgs& args = wave.args;
  const std::uint32_t value_dim = args.layout.value_dim();
  cpu_.kernels.merge(partials_of(wave, query), wave.partitions(query.row).count, value_dim,
                     args.sinks ? permit.open(args.sinks)[query.head] : kNoSink,
                     args.out + (std::size_t{query.row} * args.n_heads + query.head) * value_dim);
}

/// Merges those queries of the tile whose other partitions are computed.
void CpuAttention::merge_complete(const LaunchPermit& permit, const Wave& wave,
                                  const TilePlan& plan) {
  for (std::uint32_t i = 0; i < plan.n_queries; ++i) {
    const Query query = query_of(wave, plan, i);
    const std::uint32_t at = (query.row - wave.first_row) * wave.args.n_heads + query.head;
    // Each decrement releases its partial, and the last one acquires all of them.
    if (partitions_left_[at].fetch_sub(1, std::memory_order_acq_rel) == 1)
      merge_query(permit, wave, query);
  }
}

LaunchStatus CpuAttention::merge(const Wave& wave) {
  const std::uint32_t n_heads = wave.args.n_heads;
  const std::uint32_t n_queries = wave.n_rows * n_heads;
  const std::uint64_t partials_each = (wave.n_partials + n_queries - 1) / n_queries;
  return cpu_.each_part(wave.context, label(wave.context, LaunchSite::AttentionMerge), n_queries,
                        partials_each * (wave.args.layout.value_dim() + kMacsPerExp),
                        [&](const LaunchPermit& permit, Span32 span) {
                          for (std::uint32_t i = span.begin; i < span.end; ++i) {
                            const std::uint32_t r = wave.first_row + i / n_heads;
                            if (permit.is_live(wave.row(r).sequence))
                              merge_query(permit, wave, {.row = r, .head = i % n_heads});
                          }
                        });
}

LaunchStatus CpuAttention::run(const LaunchContext& context, const AttentionArgs& args) {
  expect_within_limits(cpu_.limits, context, args);
  LaunchStatus status{context.gates->all()};
  for (std::uint32_t row = 0; row < context.rows.size() && !status.none_live();) {
    const Wave wave = next_wave(context, args, row);
    status &= score(wave);
    if (!status.none_live() && !wave.merges_in_units()) status &= merge(wave);
    row += wave.n_rows;
  }
  return status;
}

void CpuAttention::clear() {
  const std::size_t used = std::exchange(used_partials_, 0);
  std::fill_n(partials_.begin(), used * partial_floats(cpu_.limits.head_dim), 0.0F);
  std::ranges::fill(tile_scratch_, 0.0F);
}

}  // namespace leasehold
