#include "worker/schedule/rows/proposal_limit.hpp"

#include <algorithm>

namespace leasehold {
namespace {

constexpr double kDecay = 1.0 - 1.0 / 512.0;  // factor on r in each step that does not measure r
constexpr double kUsualShare = 1.0 / 16.0;    // smallest expected r, as a share of d

}  // namespace

void Acceptance::note(std::uint32_t right, bool was_wrong) {
  for (std::uint32_t i = 0; i < right; ++i) rate_ += BoundedAverage::kNewSample * (1.0 - rate_);
  if (was_wrong) rate_ -= BoundedAverage::kNewSample * rate_;
}

/// The entry for this number of decode rows; its average is empty until such a step is measured.
ProposalLimit::DecodeStep ProposalLimit::step_of(std::uint32_t decode_rows) const {
  return decode_rows < steps_.size() ? steps_[decode_rows] : DecodeStep{};
}

std::uint32_t ProposalLimit::rows(std::uint32_t decode_rows, bool shared,
                                  std::uint32_t room) const {
  if (!noted_) return room;
  const DecodeStep step = step_of(decode_rows);
  if (!step.ns || step.since_measured >= kMeasureInterval) return 0;
  if (!row_ns_) return std::min(room, shared ? 1 : kFirstRows);
  if (!shared) return room;
  const double most = std::min<double>(room, *step.ns * kSharedStepShare / std::max(1.0, *row_ns_));
  return static_cast<std::uint32_t>(most);
}

std::uint32_t ProposalLimit::worth(const Acceptance& acceptance, std::uint32_t decode_rows,
                                   std::uint32_t most, bool repeats) const {
  const BoundedAverage step_ns = step_of(decode_rows).ns;
  if (!step_ns) return most;
  const double cost = decode_rows * row_ns_.value_or(0.0) / std::max(1.0, *step_ns);
  double before = 1.0;  // probability that the proposals before the next one are right
  std::uint32_t worth = 0;
  while (worth < most) {
    const double chance = before * acceptance.rate();
    // Without this proposal, its step would have committed its rows if those before it are right.
    const double repeated_rows = repeats ? (before - chance) * (worth + 1) : 0.0;
    if (chance <= kMargin * cost * (1.0 + repeated_rows)) break;
    before = chance;
    ++worth;
  }
  return worth;
}

void ProposalLimit::note(Duration step, StepRows rows) {
  if (step <= Duration::zero()) return;  // too short to measure, or the clock is stopped
  noted_ = true;
  if (rows.prefill > 0 || rows.decode == 0) return;
  const auto ns = static_cast<double>(step.count());
  if (steps_.size() <= rows.decode) steps_.resize(rows.decode + 1);
  DecodeStep& alike = steps_[rows.decode];
  if (rows.proposed == 0) {
    alike.ns.add_bounded(ns);
    alike.since_measured = 0;
    row_ns_.scale(kDecay);
    return;
  }
  ++alike.since_measured;
  if (!alike.ns) return;
  const double without = *alike.ns;
  row_ns_.add_bounded(std::max(0.0, ns - without) / rows.proposed, kUsualShare * without);
}

}  // namespace leasehold
