#include "kernels/cuda/plan/attention_plan.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include "common/expects.hpp"
#include "kernels/cuda/device/attention_params.hpp"
#include "kernels/cuda/device/rope_params.hpp"
#include "kernels/numerics/attention_order.hpp"

namespace leasehold::cuda {
namespace {

/// Shared memory that a block gets on every card without opting in. On sm_90 four such blocks fit
/// on an SM.
constexpr std::uint32_t kSharedBytes = 48 * 1024;
/// The most blocks of one query per SM with which heads do not share a block.
constexpr std::uint32_t kQueryBlocksAtOnce = 4;
/// Threads of a block that merges part of a row: as many as its heads need, four elements per
/// thread.
constexpr std::uint32_t kMergeThreads = 128;
/// acc is aligned to 16 bytes.
constexpr std::uint64_t kGrainFloats = 4;

constexpr std::uint64_t block_count(const GridSize& grid) {
  return std::uint64_t{grid.x} * grid.y * grid.z;
}

std::uint64_t partials_per_row(const AttentionArgs& args, std::uint32_t longest) {
  return std::uint64_t{args.n_heads} * partition_count(longest);
}
std::uint64_t max_sum_floats_per_row(const AttentionArgs& args, std::uint32_t longest) {
  const std::uint64_t floats = 2 * partials_per_row(args, longest);
  return (floats + kGrainFloats - 1) / kGrainFloats * kGrainFloats;
}

/// The partial results of `n_rows` rows from `first_row` on.
device::AttentionPartials partials_of(const AttentionArgs& args, const AttentionPlanInput& input,
                                      std::uint32_t n_rows, std::uint32_t first_row) {
  return {.max_sum = input.scratch,
          .acc = input.scratch + n_rows * max_sum_floats_per_row(args, input.longest),
          .n_partitions = partition_count(input.longest),
          .first_row = first_row,
          .n_rows = n_rows};
}

/// The names of a kernel by the type of keys and values.
struct StoredTypeNames {
  const char* f16 = nullptr;
  const char* f32 = nullptr;
  const char* q8_0 = nullptr;

  constexpr const char* of(KvType type) const {
    switch (type) {
      case KvType::F32:
        return f32;
      case KvType::F16:
        return f16;
      case KvType::Q8_0:
        return q8_0;
    }
    return nullptr;
  }
};

/// A score kernel: its queries per tile, its threads, and its names. `decode` also prepares heads
/// and merges; kernels for several rows of a sequence and for wide heads have no such form.
struct AttentionKernel {
  std::uint32_t queries;
  std::uint32_t threads;
  StoredTypeNames partitions;
  StoredTypeNames decode = {};
  std::uint32_t pair_padding = 0;     ///< Floats between two pairs of elements of the queries.
  std::uint32_t static_bytes = 512;   ///< Shared memory besides that of a launch, at most.
  std::uint32_t scale_positions = 0;  ///< Positions whose values' scales are apart from buffers.
};
constexpr std::uint32_t kThreadsPerQuery = device::kThreadsPerQuery;
constexpr AttentionKernel kOne{
    .queries = 1,
    .threads = device::kQueryThreads,
    .partitions = {"lh_attention_f16_q1", "lh_attention_f32_q1", "lh_attention_q8_0_q1"},
    .decode = {"lh_attention_decode_f16_q1", "lh_attention_decode_f32_q1",
               "lh_attention_decode_q8_0_q1"},
    .scale_positions = kPartitionPositions};
constexpr AttentionKernel kFour{
    4,
    4 * kThreadsPerQuery,
    {"lh_attention_f16_q4", "lh_attention_f32_q4", "lh_attention_q8_0_q4"},
    {"lh_attention_decode_f16_q4", "lh_attention_decode_f32_q4", "lh_attention_decode_q8_0_q4"}};
constexpr AttentionKernel kEight{
    8,
    4 * kThreadsPerQuery,
    {"lh_attention_f16_q8", "lh_attention_f32_q8", "lh_attention_q8_0_q8"},
    {"lh_attention_decode_f16_q8", "lh_attention_decode_f32_q8", "lh_attention_decode_q8_0_q8"}};
constexpr AttentionKernel kRegisterTile{
    .queries = device::kPromptQueries,
    .threads = device::kPromptThreads,
    .partitions = {"lh_attention_f16_prompt", "lh_attention_f32_prompt",
                   "lh_attention_q8_0_prompt"},
    .pair_padding = device::kPromptPairStride - 2 * device::kPromptQueries,
    .static_bytes = 6144};
constexpr AttentionKernel kEightOfWideHeads{
    8,
    4 * kThreadsPerQuery,
    {"lh_attention_f16_q8_heads", "lh_attention_f32_q8_heads", "lh_attention_q8_0_q8_heads"}};

/// The heads and rows that share a block, and the kernel for that shape.
struct TileShape {
  std::uint32_t heads;
  std::uint32_t tiles_per_kv_head;
  std::uint32_t rows;
  const AttentionKernel& kernel;
};

/// The buffers of keys and values.
struct Buffers {
  std::uint32_t positions;
  std::uint32_t count;
};
/// A kernel of one query holds a whole partition of keys, with buffers of their own for values if
/// blocks have an SM each. Else several blocks share an SM, so that one computes while others copy.
/// The last choice gives each warp four keys, whose scales of Q8_0 no warp could copy alone.
constexpr Buffers kQueryBuffers[] = {{kPartitionPositions, 1}, {128, 1}, {64, 1}, {32, 1}};
constexpr Buffers kQueryAndValueBuffers[] = {{kPartitionPositions, 2}};
constexpr std::uint32_t kQueryBlocksPerSm = 3;
constexpr Buffers kRegisterTileBuffers[] = {{64, 2}, {32, 2}};
/// Eight positions of Q8_0 have whole words of scales; wide heads in F32 have room for four.
constexpr Buffers kSpanBuffers[] = {{64, 2}, {32, 2}, {16, 2}, {8, 2}, {4, 2}};

/// The shared memory of a block: queries, the newest key and value if it prepares them, scores, and
/// buffers of keys or values.
struct BlockShape {
  const AttentionKernel& kernel;
  std::uint32_t newest;  ///< Rows of `queries`' width.

  std::uint32_t shared_bytes(const KvLayer& layout, const Buffers& buffers) const {
    const std::uint32_t width = 8 * device::octets(layout.head_dim);
    const std::uint32_t floats = (kernel.queries + newest) * width +
                                 kernel.pair_padding * width / 2 +
                                 kernel.queries * kPartitionPositions;
    return floats * 4 +
           buffers.count * buffers.positions *
               device::kv_position_bytes(layout.head_dim, layout.type) +
           kernel.scale_positions * device::kv_scales_bytes(layout.head_dim, layout.type);
  }
  /// The first of `choices` with which a block has at most `max_bytes`.
  std::optional<Buffers> first_fit(const KvLayer& layout, std::span<const Buffers> choices,
                                   std::uint32_t max_bytes) const {
    const auto fits = [&](const Buffers& buffers) {
      return shared_bytes(layout, buffers) + kernel.static_bytes <= max_bytes;
    };
    const auto found = std::ranges::find_if(choices, fits);
    return found == choices.end() ? std::nullopt : std::optional(*found);
  }
};

std::optional<Buffers> register_tile_buffers(const AttentionArgs& args,
                                             const AttentionPlanInput& input) {
  return BlockShape{kRegisterTile, 0}.first_fit(args.layout, kRegisterTileBuffers,
                                                input.max_shared_bytes);
}

/// `n_blocks` blocks of one query.
std::optional<Buffers> query_buffers(const BlockShape& block, const KvLayer& layout,
                                     const AttentionPlanInput& input, std::uint64_t n_blocks) {
  const std::uint32_t most = input.max_shared_bytes;
  const std::span all(kQueryBuffers);
  const std::span<const Buffers> shared =
      layout.type == KvType::Q8_0 ? all.first(all.size() - 1) : all;
  std::optional<Buffers> buffers;
  if (n_blocks <= input.n_sms) buffers = block.first_fit(layout, kQueryAndValueBuffers, most);
  if (!buffers) buffers = block.first_fit(layout, shared, most / kQueryBlocksPerSm);
  return buffers ? buffers : block.first_fit(layout, shared, most);
}

/// The buffers of a block of a launch of `n_blocks` blocks.
Buffers buffers_of(const BlockShape& block, const AttentionArgs& args,
                   const AttentionPlanInput& input, std::uint64_t n_blocks) {
  const std::optional<Buffers> buffers =
      &block.kernel == &kOne            ? query_buffers(block, args.layout, input, n_blocks)
      : &block.kernel == &kRegisterTile ? register_tile_buffers(args, input)
                                        : block.first_fit(args.layout, kSpanBuffers, kSharedBytes);
  ensures(buffers.has_value(), "a block fits every card");
  return *buffers;
}

TileShape tile_shape(const AttentionArgs& args, const AttentionPlanInput& input,
                     std::uint64_t n_partitions_of_all_rows) {
  const std::uint32_t group = args.n_heads / args.layout.n_kv_heads;
  const bool has_wide_heads = args.layout.head_dim > device::kSpans * device::kValueSpan;
  const bool has_few_tiles =
      n_partitions_of_all_rows * args.n_heads <= kQueryBlocksAtOnce * input.n_sms;
  if (!has_wide_heads && !input.has_multi_row && has_few_tiles) return {1, group, 1, kOne};
  const bool has_register_tile =
      input.has_multi_row && !has_wide_heads && register_tile_buffers(args, input).has_value();
  const std::uint32_t queries = has_register_tile ? kRegisterTile.queries : device::kMaxTileQueries;
  const std::uint32_t tiles = blocks_for(group, queries);
  const std::uint32_t heads = blocks_for(group, tiles);
  const std::uint32_t rows = input.has_multi_row ? queries / heads : 1;
  if (has_register_tile) return {heads, tiles, rows, kRegisterTile};
  if (has_wide_heads || input.has_multi_row) return {heads, tiles, rows, kEightOfWideHeads};
  return {heads, tiles, 1, heads == 1 ? kOne : heads <= 4 ? kFour : kEight};
}

device::AttentionParams partition_params(const PlanContext& context, const AttentionArgs& args,
                                         const AttentionPlanInput& input,
                                         const device::AttentionPartials& partials,
                                         const TileShape& tile, const Buffers& buffers) {
  return {.gate = context.gate,
          .kv = device::KvAddressing::of(args.layout, input.tables),
          .partials = partials,
          .q = args.q,
          .n_heads = args.n_heads,
          .n_kv_heads = args.layout.n_kv_heads,
          .head_dim = args.layout.head_dim,
          .value_dim = args.layout.value_dim(),
          .heads_per_tile = tile.heads,
          .tiles_per_kv_head = tile.tiles_per_kv_head,
          .rows_per_tile = tile.rows,
          .tile_positions = buffers.positions,
          .n_buffers = buffers.count,
          .window = args.window,
          .scale = args.scale,
          .softcap = args.softcap};
}

device::AttentionMergeParams merge_params(const PlanContext& context, const AttentionArgs& args,
                                          const AttentionPlanInput& input,
                                          const device::AttentionPartials& partials,
                                          std::uint32_t heads_per_block) {
  return {.gate = context.gate,
          .partials = partials,
          .out = args.out,
          .tiles = input.prepared.tiles,
          .n_heads = args.n_heads,
          .value_dim = args.layout.value_dim(),
          .heads_per_block = heads_per_block,
          .window = args.window,
          .sinks = input.sinks};
}

void expect_heads(const AttentionArgs& args) {
  static_assert(device::kMaxHeadDim <= device::kWideSpans * device::kValueSpan);
  expects(args.layout.head_dim <= device::kMaxHeadDim, "a head is at most 576 wide");
  expects(can_store(args.layout.type, args.layout.head_dim), "heads can be stored as the type");
  expects(args.n_heads % args.layout.n_kv_heads == 0, "query heads divide evenly");
}

KernelLaunch plan_partitions(const PlanContext& context, const AttentionArgs& args,
                             const AttentionPlanInput& input,
                             const device::AttentionPartials& partials) {
  const KvLayer& layout = args.layout;
  const TileShape tile =
      tile_shape(args, input, std::uint64_t{partials.n_partitions} * partials.n_rows);
  const BlockShape block{tile.kernel, 0};
  const GridSize grid{
      partials.n_partitions, layout.n_kv_heads * tile.tiles_per_kv_head,
      std::min(partials.n_rows, blocks_for(partials.n_rows, tile.rows) + input.n_runs)};
  const Buffers buffers = buffers_of(block, args, input, block_count(grid));
  return {.kernel = tile.kernel.partitions.of(layout.type),
          .grid = grid,
          .block_threads = tile.kernel.threads,
          .shared_bytes = block.shared_bytes(layout, buffers),
          .params = KernelParams(partition_params(context, args, input, partials, tile, buffers))};
}

KernelLaunch plan_merge(const PlanContext& context, const AttentionArgs& args,
                        const AttentionPlanInput& input,
                        const device::AttentionPartials& partials) {
  const bool makes_tiles = input.prepared.tiles.halves != nullptr;
  expects(!makes_tiles || args.n_heads <= device::kMaxMergedHeads, "one block merges a row");
  const std::uint32_t quads = blocks_for(args.layout.value_dim(), 4);
  const std::uint32_t heads =
      makes_tiles ? args.n_heads : std::max(1u, std::min(args.n_heads, kMergeThreads / quads));
  const std::uint32_t warps = blocks_for(heads * quads, kWarpThreads);
  return {.kernel = "lh_attention_merge",
          .grid = {blocks_for(args.n_heads, heads), partials.n_rows},
          .block_threads = std::min(warps * kWarpThreads, device::kMaxMergeThreads),
          .params = KernelParams(merge_params(context, args, input, partials, heads))};
}

}  // namespace

std::uint64_t attention_scratch_bytes_per_row(const AttentionArgs& args, std::uint32_t longest) {
  return (max_sum_floats_per_row(args, longest) +
          partials_per_row(args, longest) * args.layout.value_dim()) *
         sizeof(float);
}

std::vector<KernelLaunch> plan_attention(const PlanContext& context, const AttentionArgs& args,
                                         const AttentionPlanInput& input) {
  expect_heads(args);
  const std::uint64_t row_bytes = attention_scratch_bytes_per_row(args, input.longest);
  expects(input.scratch_bytes >= row_bytes, "the scratch has room for one row at least");
  const auto rows_at_once = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(context.n_rows, input.scratch_bytes / row_bytes));
  std::vector<KernelLaunch> launches;
  for (std::uint32_t first = 0; first < context.n_rows; first += rows_at_once) {
    const device::AttentionPartials partials =
        partials_of(args, input, std::min(rows_at_once, context.n_rows - first), first);
    launches.push_back(plan_partitions(context, args, input, partials));
    launches.push_back(plan_merge(context, args, input, partials));
  }
  return launches;
}

bool is_one_launch(const PlanContext& context, const AttentionArgs& args,
                   const AttentionPlanInput& input) {
  const std::uint32_t n_partitions = partition_count(input.longest);
  const TileShape tile = tile_shape(args, input, std::uint64_t{n_partitions} * context.n_rows);
  return tile.kernel.decode.of(args.layout.type) != nullptr && !args.layout.is_latent() &&
         !input.has_multi_row && n_partitions <= device::kMaxDecodePartitions &&
         args.n_heads <= device::kMaxMergedHeads && context.n_rows <= input.n_counters &&
         context.n_rows * attention_scratch_bytes_per_row(args, input.longest) <=
             input.scratch_bytes;
}

KernelLaunch plan_decode_attention(const PlanContext& context,
                                   const device::RopeKvAppendParams& heads,
                                   const AttentionArgs& args, const AttentionPlanInput& input) {
  expect_heads(args);
  expects(is_one_launch(context, args, input), "one launch computes the rows");
  const KvLayer& layout = args.layout;
  const device::AttentionPartials partials = partials_of(args, input, context.n_rows, 0);
  const TileShape tile =
      tile_shape(args, input, std::uint64_t{partials.n_partitions} * context.n_rows);
  const BlockShape block{tile.kernel, 2};
  const GridSize grid{partials.n_partitions, layout.n_kv_heads * tile.tiles_per_kv_head,
                      context.n_rows};
  const Buffers buffers = buffers_of(block, args, input, block_count(grid));
  return {.kernel = tile.kernel.decode.of(layout.type),
          .grid = grid,
          .block_threads = tile.kernel.threads,
          .shared_bytes = std::max(block.shared_bytes(layout, buffers),
                                   device::merge_shared_bytes(args.n_heads)),
          .params = KernelParams(device::DecodeAttentionParams{
              .attention = partition_params(context, args, input, partials, tile, buffers),
              .heads = heads,
              .merge = merge_params(context, args, input, partials, args.n_heads),
              .rounded = input.prepared.rounded,
              .counters = input.counters})};
}

}  // namespace leasehold::cuda
