#include "kernels/cuda/plan/attention_plan.hpp"

#include <algorithm>

#include "common/expects.hpp"
#include "kernels/cuda/device/attention_params.hpp"
#include "kernels/cuda/device/rope_params.hpp"
#include "kernels/numerics/attention_order.hpp"

namespace leasehold::cuda {
namespace {

/// Shared memory that a block gets on every card without opting in, minus the static part. On sm_90
/// four such blocks fit on an SM.
constexpr std::uint32_t kSharedBytes = 48 * 1024 - 512;
constexpr std::uint32_t kMaxTilePositions = 64;
/// Static shared memory of the register tile, and positions for which half of its warps have keys.
constexpr std::uint32_t kRegisterTileStaticBytes = 6144;
constexpr std::uint32_t kMinRegisterTilePositions = 32;
/// Eight positions of Q8_0 have whole words of scales; wide heads in F32 have room for four.
constexpr std::uint32_t kMinTilePositions = 8;
constexpr std::uint32_t kMinTilePositionsF32 = 4;
/// Threads of a block that merges part of a row: as many as its heads need, four elements per
/// thread.
constexpr std::uint32_t kMergeThreads = 128;
/// acc is aligned to 16 bytes.
constexpr std::uint64_t kGrainFloats = 4;

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
  std::uint32_t pair_padding = 0;  ///< Floats between two pairs of elements of the queries.
};
constexpr std::uint32_t kThreadsPerQuery = device::kThreadsPerQuery;
constexpr AttentionKernel kOne{
    1,
    kThreadsPerQuery,
    {"lh_attention_f16_q1", "lh_attention_f32_q1", "lh_attention_q8_0_q1"},
    {"lh_attention_decode_f16_q1", "lh_attention_decode_f32_q1", "lh_attention_decode_q8_0_q1"}};
constexpr AttentionKernel kOneWide{
    1,
    4 * kThreadsPerQuery,
    {"lh_attention_f16_q1_wide", "lh_attention_f32_q1_wide", "lh_attention_q8_0_q1_wide"},
    {"lh_attention_decode_f16_q1_wide", "lh_attention_decode_f32_q1_wide",
     "lh_attention_decode_q8_0_q1_wide"}};
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
    .pair_padding = device::kPromptPairStride - 2 * device::kPromptQueries};
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

/// The shared memory of a block: queries, the newest key and value if it prepares them, scores, and
/// two buffers of keys or values.
struct BlockShape {
  const AttentionKernel& kernel;
  std::uint32_t newest;  ///< Rows of `queries`' width.

  std::uint32_t shared_bytes(const KvLayer& layout, std::uint32_t positions) const {
    const std::uint32_t width = 8 * device::octets(layout.head_dim);
    const std::uint32_t floats = (kernel.queries + newest) * width +
                                 kernel.pair_padding * width / 2 +
                                 kernel.queries * kPartitionPositions;
    return floats * 4 + 2 * positions * device::kv_position_bytes(layout.head_dim, layout.type);
  }
  /// The most positions, from `least` on, with which a block fits; 0: it does not fit.
  std::uint32_t most_positions(const KvLayer& layout, std::uint32_t least,
                               std::uint32_t max_bytes) const {
    std::uint32_t positions = kMaxTilePositions;
    while (positions >= least && shared_bytes(layout, positions) > max_bytes) positions /= 2;
    return positions >= least ? positions : 0;
  }
};

/// Positions in each buffer of a block of the register tile; 0 if the card has no room for it.
std::uint32_t register_tile_positions(const AttentionArgs& args, const AttentionPlanInput& input) {
  if (input.max_shared_bytes < kRegisterTileStaticBytes) return 0;
  return BlockShape{kRegisterTile, 0}.most_positions(
      args.layout, kMinRegisterTilePositions, input.max_shared_bytes - kRegisterTileStaticBytes);
}

/// Positions in each buffer of a block.
std::uint32_t tile_positions(const BlockShape& block, const AttentionArgs& args,
                             const AttentionPlanInput& input) {
  if (&block.kernel == &kRegisterTile) return register_tile_positions(args, input);
  const bool is_f32 = args.layout.type == KvType::F32;
  const std::uint32_t positions = block.most_positions(
      args.layout, is_f32 ? kMinTilePositionsF32 : kMinTilePositions, kSharedBytes);
  ensures(positions > 0, "a block fits every card");
  return positions;
}

TileShape tile_shape(const AttentionArgs& args, const AttentionPlanInput& input,
                     std::uint64_t n_partitions_of_all_rows) {
  const std::uint32_t group = args.n_heads / args.layout.n_kv_heads;
  const bool has_wide_heads = args.layout.head_dim > device::kSpans * device::kValueSpan;
  const bool has_few_tiles = n_partitions_of_all_rows * args.n_heads <= input.blocks_at_once;
  if (!has_wide_heads && !input.has_multi_row && has_few_tiles) return {1, group, 1, kOneWide};
  const bool has_register_tile =
      input.has_multi_row && !has_wide_heads && register_tile_positions(args, input) > 0;
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
                                         const TileShape& tile, std::uint32_t positions) {
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
          .tile_positions = positions,
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
  const std::uint32_t positions = tile_positions(block, args, input);
  return {
      .kernel = tile.kernel.partitions.of(layout.type),
      .grid = {partials.n_partitions, layout.n_kv_heads * tile.tiles_per_kv_head,
               std::min(partials.n_rows, blocks_for(partials.n_rows, tile.rows) + input.n_runs)},
      .block_threads = tile.kernel.threads,
      .shared_bytes = block.shared_bytes(layout, positions),
      .params = KernelParams(partition_params(context, args, input, partials, tile, positions))};
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
  const std::uint32_t positions = tile_positions(block, args, input);
  return {
      .kernel = tile.kernel.decode.of(layout.type),
      .grid = {partials.n_partitions, layout.n_kv_heads * tile.tiles_per_kv_head, context.n_rows},
      .block_threads = tile.kernel.threads,
      .shared_bytes =
          std::max(block.shared_bytes(layout, positions), device::merge_shared_bytes(args.n_heads)),
      .params = KernelParams(device::DecodeAttentionParams{
          .attention = partition_params(context, args, input, partials, tile, positions),
          .heads = heads,
          .merge = merge_params(context, args, input, partials, args.n_heads),
          .rounded = input.prepared.rounded,
          .counters = input.counters})};
}

}  // namespace leasehold::cuda
