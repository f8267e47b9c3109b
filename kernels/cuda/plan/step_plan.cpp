#include "kernels/cuda/plan/step_plan.hpp"

#include <algorithm>

#include "common/expects.hpp"

namespace leasehold::cuda {
namespace {

constexpr std::uint32_t kSamplingThreads = 256;
constexpr std::uint32_t kLogitsPerPart = 4096;  ///< Below this, the merge costs more than a scan.
constexpr std::uint32_t kSamplingBlocksPerSm = 2;

}  // namespace

std::uint32_t logit_parts(std::uint32_t n_rows, std::uint32_t n_vocab, std::uint32_t n_sms) {
  const std::uint32_t useful =
      std::min(device::kMaxLogitParts, blocks_for(n_vocab, kLogitsPerPart));
  return std::clamp(kSamplingBlocksPerSm * n_sms / std::max(n_rows, 1u), 1u, std::max(useful, 1u));
}

KernelLaunch plan_top_candidates(const device::TopCandidatesParams& params, std::uint32_t n_rows,
                                 std::uint32_t n_parts) {
  expects(params.k >= 1 && params.k <= device::kMaxCandidates, "k is between 1 and kMaxCandidates");
  expects(n_parts >= 1 && n_parts <= device::kMaxLogitParts, "a row has 1 to kMaxLogitParts parts");
  return {.kernel = "lh_top_candidates",
          .grid = {n_rows, n_parts},
          .block_threads = kSamplingThreads,
          .params = KernelParams(params)};
}

KernelLaunch plan_scatter(const device::ScatterParams& params, std::uint32_t largest_bytes) {
  constexpr std::uint32_t kThreads = 256;
  constexpr std::uint32_t kBytesPerThread = 64;  // four words of 16 bytes
  expects(params.n_first <= kMaxScatterPieces, "the blocks of a scatter can be counted");
  const std::uint32_t pieces = std::max(1u, params.n_first);
  const std::uint32_t parts =
      std::min(blocks_for(largest_bytes, kThreads * kBytesPerThread), kMaxScatterPieces / pieces);
  return {.kernel = "lh_scatter",
          .grid = {std::max(1u, parts), pieces},
          .block_threads = kThreads,
          .params = KernelParams(params)};
}

KernelLaunch plan_segment_gate(const device::SegmentGateParams& params) {
  return {.kernel = params.condition != 0 ? "lh_conditional_gate" : "lh_segment_gate",
          .grid = {},
          .block_threads = 1,
          .params = KernelParams(params)};
}

}  // namespace leasehold::cuda
