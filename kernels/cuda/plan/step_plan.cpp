#include "kernels/cuda/plan/step_plan.hpp"

#include <algorithm>

#include "common/expects.hpp"

namespace leasehold::cuda {
namespace {

constexpr std::uint32_t kSamplingThreads = 512;

}  // namespace

KernelLaunch plan_top_candidates(const PlanContext& context, const LogitRows& rows,
                                 const CandidateRows& candidates) {
  expects(candidates.k >= 1 && candidates.k <= device::kMaxCandidates,
          "k is between 1 and kMaxCandidates");
  return {
      .kernel = "lh_top_candidates",
      .grid = {rows.n_rows},
      .block_threads = kSamplingThreads,
      .params = KernelParams(device::TopCandidatesParams{.gate = context.gate,
                                                         .logits = rows.logits,
                                                         .out = candidates.out,
                                                         .has_nonfinite = candidates.has_nonfinite,
                                                         .n_vocab = rows.n_vocab,
                                                         .k = candidates.k})};
}

KernelLaunch plan_scatter(const PlanContext& context, const ScatterWork& work) {
  constexpr std::uint32_t kThreads = 256;
  constexpr std::uint32_t kBytesPerThread = 64;  // four words of 16 each
  const std::uint32_t parts = blocks_for(work.largest_bytes, kThreads * kBytesPerThread);
  return {.kernel = "lh_scatter",
          .grid = {std::max(1u, parts), work.n_pieces},
          .block_threads = kThreads,
          .params = KernelParams(device::ScatterParams{.gate = context.gate,
                                                       .staging = work.staging,
                                                       .pieces = work.pieces,
                                                       .n_pieces = work.n_pieces})};
}

KernelLaunch plan_segment_gate(const PlanContext& context, std::uint32_t segment,
                               std::uint64_t* seen, std::uint64_t condition) {
  return {.kernel = "lh_segment_gate",
          .grid = {},
          .block_threads = 1,
          .params = KernelParams(device::SegmentGateParams{
              .gate = context.gate, .seen = seen, .condition = condition, .segment = segment})};
}

}  // namespace leasehold::cuda
