#include "worker/schedule/proposal_limit.hpp"

#include <algorithm>

namespace leasehold {
namespace {

constexpr double kNewProposalSample = 0.125;  // its part of a moving average
constexpr double kDecay = 1.0 - 1.0 / 512.0;  // of r, in a step that does not measure it
constexpr double kLongestStall = 4;
constexpr double kUsualShare = 1.0 / 16.0;  // r of d, at least

/// The machine may stall in a step, so a sample counts up to kLongestStall · `expected`, or the
/// average.
void add_bounded(std::optional<double>& average, double sample, double expected = 0) {
  const double before = average.value_or(sample);
  const double most = kLongestStall * std::max(before, expected);
  average = before + kNewProposalSample * (std::min(sample, most) - before);
}

}  // namespace

void Acceptance::note(std::uint32_t right, bool was_wrong) {
  for (std::uint32_t i = 0; i < right; ++i) rate_ += kNewProposalSample * (1.0 - rate_);
  if (was_wrong) rate_ -= kNewProposalSample * rate_;
}

std::optional<double> ProposalLimit::decode_ns(std::uint32_t decode_rows) const {
  return decode_rows < decode_ns_.size() ? decode_ns_[decode_rows] : std::nullopt;
}

std::uint32_t ProposalLimit::rows(std::uint32_t decode_rows, bool shared,
                                  std::uint32_t room) const {
  if (!noted_) return room;
  const std::optional<double> step_ns = decode_ns(decode_rows);
  if (!step_ns || since_measured_ >= kMeasureInterval) return 0;
  if (!row_ns_) return std::min(room, shared ? 1 : kFirstRows);
  if (!shared) return room;
  const double most = std::min<double>(room, *step_ns * kOthersShare / std::max(1.0, *row_ns_));
  return static_cast<std::uint32_t>(most);
}

std::uint32_t ProposalLimit::worth(const Acceptance& acceptance, std::uint32_t decode_rows,
                                   std::uint32_t most) const {
  const std::optional<double> step_ns = decode_ns(decode_rows);
  if (!step_ns) return most;
  const double cost = decode_rows * row_ns_.value_or(0.0) / std::max(1.0, *step_ns);
  double chance = acceptance.rate();  // that all proposals so far are right
  std::uint32_t worth = 0;
  for (; worth < most && chance > kMargin * cost; ++worth) chance *= acceptance.rate();
  return worth;
}

void ProposalLimit::note(Duration step, StepRows rows) {
  if (step <= Duration::zero()) return;  // too short for the clock, or a clock that does not run
  noted_ = true;
  if (rows.prefill > 0 || rows.decode == 0) return;
  const auto ns = static_cast<double>(step.count());
  if (rows.proposed == 0) {
    if (decode_ns_.size() <= rows.decode) decode_ns_.resize(rows.decode + 1);
    add_bounded(decode_ns_[rows.decode], ns);
    if (row_ns_) *row_ns_ *= kDecay;
    since_measured_ = 0;
    return;
  }
  ++since_measured_;
  const std::optional<double> without = decode_ns(rows.decode);
  if (!without) return;
  add_bounded(row_ns_, std::max(0.0, ns - *without) / rows.proposed, kUsualShare * *without);
}

}  // namespace leasehold
