#include "kernels/cuda/plan/recurrent_plan.hpp"

#include <algorithm>

#include "common/expects.hpp"

namespace leasehold::cuda {
namespace {

/// Dynamic shared memory of a block per element of a key: a tile of the state, a key and a query.
constexpr std::uint32_t kBytesPerKey = (device::kStateColumns + 2) * sizeof(float);

}  // namespace

device::HeadPieces head_pieces(std::span<const StatePiece> pieces) {
  const StatePiece first = pieces.front();
  const auto in_block = [&](std::uint32_t block) {
    return static_cast<std::uint32_t>(
        std::ranges::count(pieces, block, [](const StatePiece& piece) { return piece.block; }));
  };
  const std::uint32_t in_first_block = in_block(first.block);
  const std::uint32_t in_later_block = std::max(in_block(first.block + 1), 1u);
  std::uint32_t stride_bytes = 0;
  for (std::size_t i = 1; i < pieces.size() && stride_bytes == 0; ++i)
    if (pieces[i].block == pieces[i - 1].block)
      stride_bytes = pieces[i].offset_bytes - pieces[i - 1].offset_bytes;
  const device::HeadPieces all{.first = first,
                               .stride_bytes = stride_bytes,
                               .in_first_block = in_first_block,
                               .in_later_block = in_later_block};
  for (std::uint32_t head = 0; head < pieces.size(); ++head)
    expects(all.of(head) == pieces[head], "the pieces of heads lie one behind the other");
  return all;
}

std::uint32_t most_state_keys(std::uint32_t max_shared_bytes) {
  constexpr std::uint32_t kStaticBytes = 1024;  // more than the kernel has
  return max_shared_bytes > kStaticBytes ? (max_shared_bytes - kStaticBytes) / kBytesPerKey : 0;
}

KernelLaunch plan_convolution(const PlanContext& context, const ConvolutionArgs& args,
                              device::StateTables states, const float* weight, const float* bias) {
  constexpr std::uint32_t kThreads = 128;
  return {.kernel = "lh_convolution",
          .grid = {blocks_for(args.n_channels, kThreads), context.n_rows},
          .block_threads = kThreads,
          .params =
              KernelParams(device::ConvolutionParams{.gate = context.gate,
                                                     .states = states,
                                                     .x = args.x,
                                                     .input_gate = args.input_gate,
                                                     .output_gate = args.output_gate,
                                                     .out = args.out,
                                                     .weight = weight,
                                                     .bias = bias,
                                                     .piece = args.piece,
                                                     .n_channels = args.n_channels,
                                                     .n_taps = args.n_taps,
                                                     .applies_silu = args.applies_silu ? 1u : 0u})};
}

std::vector<KernelLaunch> plan_recurrence(const PlanContext& context, const RecurrenceArgs& args,
                                          device::StateTables states,
                                          const device::HeadPieces& pieces,
                                          const RecurrenceVectors& vectors) {
  constexpr std::uint32_t kThreads = 128;
  const KernelParams params(
      device::RecurrenceParams{.gate = context.gate,
                               .states = states,
                               .x = args.x,
                               .steps = args.steps,
                               .weights = args.weights,
                               .step_bias = vectors.step_bias,
                               .decay_rates = vectors.decay_rates,
                               .skip = vectors.skip,
                               .out = args.out,
                               .pieces = pieces,
                               .row_width = args.row_width,
                               .query_offset = args.query_offset,
                               .key_offset = args.key_offset,
                               .value_offset = args.value_offset,
                               .n_groups = args.n_groups,
                               .n_heads = args.n_heads,
                               .key_dim = args.key_dim,
                               .value_dim = args.value_dim,
                               .alternates_groups = args.alternates_groups ? 1u : 0u,
                               .is_delta = args.rule == RecurrenceRule::Delta ? 1u : 0u,
                               .epsilon = args.epsilon});
  return {
      {.kernel = "lh_prepare_recurrence",
       .grid = {context.n_rows},
       .block_threads = kThreads,
       .params = params},
      {.kernel = "lh_recurrence",
       .grid = {blocks_for(args.value_dim, device::kStateColumns), args.n_heads, context.n_rows},
       .block_threads = kWarpThreads,
       .shared_bytes = kBytesPerKey * args.key_dim,
       .params = params}};
}

}  // namespace leasehold::cuda
