/// Attention of the CPU backend. A step is processed in *waves* of rows whose partials fit the
/// scratch. Each wave has one launch that computes partials and one that merges them.
#include <algorithm>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/cpu/tiling.hpp"

namespace leasehold {

/// Rows [first_row, first_row + n_rows). The partials of row i of the wave are at
/// [first_partial_[i], first_partial_[i + 1]), laid out as [n_heads, partitions of the row].
struct CpuBackend::AttentionWave {
  std::uint32_t first_row;
  std::uint32_t n_rows;
  std::uint32_t n_partials;
};

CpuBackend::AttentionWave CpuBackend::next_wave(const LaunchContext& context,
                                                const AttentionArgs& args,
                                                std::uint32_t first_row) {
  AttentionWave wave{.first_row = first_row, .n_rows = 0, .n_partials = 0};
  first_partial_[0] = 0;
  for (std::size_t r = first_row; r < context.rows.size(); ++r) {
    const std::uint32_t more = args.n_heads * partition_count(context.rows[r].position + 1);
    if (wave.n_partials + more > max_partials_) break;
    wave.n_partials += more;
    first_partial_[++wave.n_rows] = wave.n_partials;
  }
  used_partials_ = std::max<std::size_t>(used_partials_, wave.n_partials);
  return wave;
}

LaunchStatus CpuBackend::score_wave(const LaunchContext& context, const AttentionArgs& args,
                                    const AttentionWave& wave) {
  const KvLayout& layout = args.layout;
  const std::uint32_t stride = partial_floats(layout.head_dim);
  const auto score = [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
    const auto after =
        std::upper_bound(first_partial_.begin(), first_partial_.begin() + wave.n_rows + 1, tile);
    const auto in_wave = static_cast<std::uint32_t>(after - first_partial_.begin() - 1);
    const std::size_t r = wave.first_row + in_wave;
    const RowRef row = context.rows[r];
    if (!permit.is_live(row.sequence)) return;
    const std::uint32_t n_partitions = partition_count(row.position + 1);
    const std::uint32_t head = (tile - first_partial_[in_wave]) / n_partitions;
    const std::uint32_t p = (tile - first_partial_[in_wave]) % n_partitions;
    const std::uint32_t kv_head = head / (args.n_heads / layout.n_kv_heads);
    Partition partition;
    partition.q = args.q + (r * args.n_heads + head) * layout.head_dim;
    partition.head_dim = layout.head_dim;
    partition.scale = args.scale;
    partition.type = layout.type;
    partition.n_positions =
        std::min(kPartitionPositions, row.position + 1 - p * kPartitionPositions);
    for (std::uint32_t b = 0; b * KvLayout::kBlockTokens < partition.n_positions; ++b) {
      const std::byte* block =
          permit.open(args.block_tables[row.sequence][p * kPartitionBlocks + b]);
      partition.keys[b] = block + layout.head_offset_bytes(context.layer, 0, kv_head);
      partition.values[b] = block + layout.head_offset_bytes(context.layer, 1, kv_head);
    }
    kernels_.attend(partition, partials_.data() + std::size_t{tile} * stride);
  };
  return launcher_.run(context, label(context, LaunchSite::AttentionScores, Touches::TenantMemory),
                       wave.n_partials, score);
}

LaunchStatus CpuBackend::merge_wave(const LaunchContext& context, const AttentionArgs& args,
                                    const AttentionWave& wave) {
  const std::uint32_t head_dim = args.layout.head_dim;
  const std::uint32_t n_heads = args.n_heads;
  const auto merge_head = [&](const LaunchPermit& permit, std::uint32_t in_wave,
                              std::uint32_t head) {
    const std::size_t r = wave.first_row + in_wave;
    const RowRef row = context.rows[r];
    if (!permit.is_live(row.sequence)) return;
    const std::uint32_t n_partitions = partition_count(row.position + 1);
    const std::size_t first = first_partial_[in_wave] + head * n_partitions;
    kernels_.merge(partials_.data() + first * partial_floats(head_dim), n_partitions, head_dim,
                   args.out + (r * n_heads + head) * head_dim);
  };
  const std::uint32_t items = wave.n_rows * n_heads;
  const std::uint64_t partials_each = (wave.n_partials + items - 1) / items;
  const std::uint32_t per_tile = items_per_tile(partials_each * (head_dim + kMacsPerExp));
  return launcher_.run(context, label(context, LaunchSite::AttentionMerge),
                       tiles_for(items, per_tile),
                       [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
                         const Span32 span = tile_span(tile, per_tile, items);
                         for (std::uint32_t i = span.begin; i < span.end; ++i)
                           merge_head(permit, i / n_heads, i % n_heads);
                       });
}

LaunchStatus CpuBackend::attention(const LaunchContext& context, const AttentionArgs& args) {
  expect_within_limits(limits_, context, args);
  SequenceMask live = context.gates->all();
  for (std::uint32_t row = 0; row < context.rows.size() && live != 0;) {
    const AttentionWave wave = next_wave(context, args, row);
    live &= score_wave(context, args, wave).live;
    if (live != 0) live &= merge_wave(context, args, wave).live;
    row += wave.n_rows;
  }
  return {live};
}

}  // namespace leasehold
