#include "kernels/cuda/plan/row_plan.hpp"

#include <algorithm>

#include "common/expects.hpp"
#include "kernels/cuda/device/embedding_params.hpp"
#include "kernels/cuda/device/feed_forward_params.hpp"
#include "kernels/cuda/device/norm_params.hpp"
#include "kernels/cuda/device/rope_params.hpp"

namespace leasehold::cuda {
namespace {

/// Shared memory that a block gets on every card without opting in.
constexpr std::uint32_t kPlainSharedBytes = 47 * 1024;  // minus the static part

constexpr std::uint32_t kHeadsPerBlock = 4;

/// The threads of a norm's block: one per quad of elements, at most kMaxNormThreads.
std::uint32_t norm_threads(std::uint32_t width) {
  const std::uint32_t warps = blocks_for(width / 4, kWarpThreads);
  return std::min(warps * kWarpThreads, device::kMaxNormThreads);
}

}  // namespace

KernelLaunch plan_embedding(const PlanContext& context, const EmbeddingArgs& args,
                            const std::byte* table) {
  const WeightMatrix& matrix = args.table;
  const bool is_grouped = matrix.layout == MatrixLayout::RowGroups;
  constexpr std::uint32_t kThreads = 256;
  return {.kernel = "lh_embedding",
          .grid = {blocks_for(matrix.n_in, kThreads), context.n_rows},
          .block_threads = kThreads,
          .params = KernelParams(
              device::EmbeddingParams{.gate = context.gate,
                                      .table = table,
                                      .tokens = args.tokens,
                                      .out = args.out,
                                      .row_bytes = row_size_bytes(matrix.type, matrix.n_in),
                                      .type = matrix.type,
                                      .shape = block_shape(matrix.type),
                                      .n_vocab = matrix.n_out,
                                      .n_embd = matrix.n_in,
                                      .is_grouped = is_grouped ? 1u : 0u,
                                      .scale = args.scale})};
}

KernelLaunch plan_rms_norm(const PlanContext& context, const RmsNormArgs& args,
                           const NormVectors& vectors, const PreparedRows& prepared,
                           bool has_floats) {
  const std::uint32_t row_bytes = args.width * static_cast<std::uint32_t>(sizeof(float));
  const bool fits_shared = row_bytes <= kPlainSharedBytes && args.width % 4 == 0;
  const bool stores_floats = has_floats || !fits_shared || args.accumulate;
  const device::RmsNormParams params{.gate = context.gate,
                                     .x = args.x,
                                     .weight = vectors.weight,
                                     .out_scale = vectors.out_scale,
                                     .out = stores_floats ? args.out : nullptr,
                                     .tiles = prepared.tiles,
                                     .rounded = prepared.rounded,
                                     .width = args.width,
                                     .vectors_per_row = args.vectors_per_row,
                                     .weight_stride = args.has_own_weights ? args.width : 0,
                                     .epsilon = args.epsilon,
                                     .scale = args.scale,
                                     .is_centered = args.is_centered ? 1u : 0u,
                                     .accumulate = args.accumulate ? 1u : 0u,
                                     .fits_shared = fits_shared ? 1u : 0u};
  return {.kernel = "lh_rms_norm",
          .grid = {context.n_rows * args.vectors_per_row},
          .block_threads = fits_shared ? norm_threads(args.width) : 256,
          .shared_bytes = fits_shared ? row_bytes : 0,
          .params = KernelParams(params)};
}

KernelLaunch plan_rope_kv_append(const device::RopeKvAppendParams& params, std::uint32_t n_rows) {
  expects(params.head_dim <= device::kMaxHeadDim, "a head fits a warp's shared memory");
  expects(can_store(params.kv.type, params.head_dim), "heads can be stored as the type");
  return {.kernel = "lh_rope_kv_append",
          .grid = {blocks_for(device::head_count(params), kHeadsPerBlock), n_rows},
          .block_threads = kHeadsPerBlock * kWarpThreads,
          .params = KernelParams(params)};
}

KernelLaunch plan_swiglu(const PlanContext& context, const SwiGluArgs& args,
                         const PreparedRows& prepared, RowParts parts) {
  constexpr std::uint32_t kThreads = 512;  // a multiple of every block size
  // The last block gathers the largest of each block, one per thread.
  std::uint32_t blocks = std::min(blocks_for(args.width, kThreads), kThreads);
  if (prepared.tiles.halves != nullptr)
    blocks = std::clamp(parts.max_blocks / std::max(context.n_rows, 1u), 1u, std::max(blocks, 1u));
  return {.kernel = "lh_swiglu",
          .grid = {blocks, context.n_rows},
          .block_threads = kThreads,
          .params = KernelParams(device::SwiGluParams{.gate = context.gate,
                                                      .gates = args.gate,
                                                      .up = args.up,
                                                      .tiles = prepared.tiles,
                                                      .rounded = prepared.rounded,
                                                      .part_largest = parts.largest,
                                                      .counters = parts.counters,
                                                      .width = args.width,
                                                      .up_stride = args.stride(),
                                                      .activation = args.activation})};
}

KernelLaunch plan_softcap(const PlanContext& context, const SoftcapArgs& args,
                          std::uint32_t n_rows) {
  constexpr std::uint32_t kThreads = 256;
  return {
      .kernel = "lh_softcap",
      .grid = {blocks_for(args.width, kThreads), n_rows},
      .block_threads = kThreads,
      .params = KernelParams(device::SoftcapParams{.gate = context.gate,
                                                   .x = args.x,
                                                   .width = args.width,
                                                   .is_logit_rows = args.select.empty() ? 0u : 1u,
                                                   .cap = args.cap})};
}

KernelLaunch plan_expert_routing(const PlanContext& context, const ExpertRoutingArgs& args,
                                 const RoutingVectors& vectors) {
  expects(args.n_used >= 1 && args.n_used <= args.n_experts, "some experts are chosen of all");
  expects(args.n_groups <= kMaxExpertGroups, "a lane of a warp scores each group");
  return {.kernel = "lh_expert_routing",
          .grid = {context.n_rows},
          .block_threads = kWarpThreads,
          .params = KernelParams(device::ExpertRoutingParams{
              .gate = context.gate,
              .scores = args.scores,
              .bias = vectors.bias,
              .expert_scales = vectors.scales,
              .chosen = args.chosen,
              .weights = args.weights,
              .n_experts = args.n_experts,
              .n_used = args.n_used,
              .normalize_expert_weights = args.normalize_expert_weights ? 1u : 0u,
              .gating = args.gating,
              .n_groups = args.n_groups,
              .n_groups_used = args.n_groups_used,
              .scale = args.scale})};
}

KernelLaunch plan_weighted_sum(const PlanContext& context, const WeightedSumArgs& args) {
  constexpr std::uint32_t kThreads = 256;
  return {.kernel = "lh_weighted_sum",
          .grid = {blocks_for(args.width, kThreads), context.n_rows},
          .block_threads = kThreads,
          .params = KernelParams(
              device::WeightedSumParams{.gate = context.gate,
                                        .x = args.x,
                                        .weights = args.weights,
                                        .out = args.out,
                                        .n_terms = args.n_terms,
                                        .width = args.width,
                                        .applies_sigmoid = args.applies_sigmoid ? 1u : 0u,
                                        .accumulate = args.accumulate ? 1u : 0u})};
}

}  // namespace leasehold::cuda
