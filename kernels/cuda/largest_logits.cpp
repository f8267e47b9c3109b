#include "kernels/cuda/largest_logits.hpp"

#include <algorithm>

#include "kernels/cuda/plan/step_plan.hpp"

namespace leasehold::cuda {
namespace {

constexpr std::uint32_t kCandidatesPerRow = device::kMaxCandidates;

struct CandidateRows {
  device::Candidate* out;        ///< [n_rows, kCandidatesPerRow]
  std::uint32_t* has_nonfinite;  ///< [n_rows]
};
constexpr std::size_t size_bytes_of(std::uint32_t n_rows) {
  return n_rows * (kCandidatesPerRow * sizeof(device::Candidate) + sizeof(std::uint32_t));
}
CandidateRows rows_at(std::byte* at, std::uint32_t n_rows) {
  auto* const candidates = reinterpret_cast<device::Candidate*>(at);
  return {.out = candidates,
          .has_nonfinite = reinterpret_cast<std::uint32_t*>(candidates + std::size_t{n_rows} *
                                                                             kCandidatesPerRow)};
}

}  // namespace

Result<LargestLogits> LargestLogits::create(const Context& context, Launcher& launcher,
                                            const BackendLimits& limits) {
  LargestLogits made(limits.max_logit_rows);
  made.found_ = TRY(launcher.zeroed_buffer(size_bytes_of(limits.max_logit_rows)));
  made.keys_ =
      TRY(launcher.zeroed_buffer(std::size_t{limits.max_logit_rows} * device::kMaxLogitParts *
                                 kCandidatesPerRow * sizeof(std::uint64_t)));
  made.host_found_ = TRY(PinnedBuffer::allocate(context, size_bytes_of(limits.max_logit_rows)));
  return made;
}

void LargestLogits::begin(std::uint32_t n_rows) {
  n_rows_ = n_rows;
  is_found_ = false;
}

KernelLaunch LargestLogits::plan(const PlanContext& context, const MatmulArgs& head,
                                 std::uint32_t n_rows, std::uint32_t* counters,
                                 std::uint32_t n_sms) const {
  const CandidateRows found = rows_at(found_.data(), max_rows_);
  const std::uint32_t searched = std::min(n_rows, max_rows_);
  return plan_top_candidates({.gate = context.gate,
                              .logits = head.out,
                              .out = found.out,
                              .has_nonfinite = found.has_nonfinite,
                              .part_keys = reinterpret_cast<std::uint64_t*>(keys_.data()),
                              .counters = counters,
                              .n_vocab = head.weight.n_out,
                              .k = kCandidatesPerRow},
                             searched, logit_parts(searched, head.weight.n_out, n_sms));
}

CUresult LargestLogits::copy(Launcher& launcher) const {
  return launcher.copy_to_host(host_found_.data(), found_.data(), found_.size_bytes());
}

std::optional<TopLogits> LargestLogits::row(std::uint32_t row) const {
  if (!is_found_ || row >= n_rows_) return std::nullopt;
  const CandidateRows rows = rows_at(host_found_.data(), max_rows_);
  TopLogits top{.tokens = {}, .all_finite = rows.has_nonfinite[row] == 0};
  for (std::uint32_t i = 0; i < kCandidatesPerRow; ++i) {
    const device::Candidate& candidate = rows.out[std::size_t{row} * kCandidatesPerRow + i];
    if (candidate.token == device::kNoToken) break;  // the vocabulary has no more tokens
    top.tokens.push_back({.token = candidate.token, .logit = candidate.logit});
  }
  return top;
}

void LargestLogits::clear(Launcher& launcher) const {
  launcher.zero(found_);
  launcher.zero(keys_);
}

}  // namespace leasehold::cuda
