#include "worker/schedule/rows/prefill_limit.hpp"

#include <algorithm>
#include <cmath>

namespace leasehold {
namespace {

constexpr double kMostRows = 1 << 20;  // more than any budget
constexpr double kDecodeChange =
    0.125;                            // smallest relative difference at which d counts as changed
constexpr double kUnexpected = 0.25;  // smallest relative difference of a step from the model
constexpr std::uint32_t kUnexpectedSteps = 2;

bool differs(double ns, double usual_ns, double part) {
  return std::abs(ns - usual_ns) > part * usual_ns;
}

}  // namespace

std::uint32_t PrefillLimit::rows(std::uint32_t decode_rows, std::uint32_t budget,
                                 const ShortPrompts& prompts) const {
  if (!noted_) return budget;
  if (decode_rows == 0) return prefill_only_rows(budget);
  if (!decode_ns_ || since_measured_ >= kMeasureInterval) return 0;
  const double rows = std::max(allowed_rows_ + row_fraction_, short_rows(prompts));
  return std::min(static_cast<std::uint32_t>(rows), budget);
}

std::uint32_t PrefillLimit::prefill_only_rows(std::uint32_t budget) const {
  if (!alone_rows_) return budget;
  const double afforded = kMostPromptStep.count() * *alone_rows_ / std::max(1.0, *prefill_only_ns_);
  const auto rows = static_cast<std::uint32_t>(std::min(afforded, kMostRows));
  return std::min(std::max(rows, kFirstRows), budget);
}

void PrefillLimit::note_alone(double ns, std::uint32_t rows) {
  const double usual =
      alone_rows_ ? *prefill_only_ns_ / *alone_rows_ * static_cast<double>(rows) : 0;
  prefill_only_ns_.add(usual > 0 ? std::min(ns, BoundedAverage::kMostStall * usual) : ns);
  alone_rows_.add(static_cast<double>(rows));
}

/// Precondition: r is known.
double PrefillLimit::rows_in(double ns) const {
  return std::clamp(ns * *mixed_rows_ / std::max(1.0, *mixed_ns_), 1.0, kMostRows);
}

double PrefillLimit::most_rows() const {
  return std::max<double>(kFirstRows, 2 * last_rows_);
}

/// Precondition: d is known.
double PrefillLimit::short_rows(const ShortPrompts& prompts) const {
  if (!mixed_rows_ || prompts.per_stream == 0) return 0;
  const double share_ns = prompts.per_stream * kShortShare * *decode_ns_;
  const double left_ns = static_cast<double>(kMostPromptStep.count()) - *decode_ns_;
  const double rows = rows_in(std::min(share_ns, left_ns));
  return std::min({rows, most_rows(), static_cast<double>(prompts.work)});
}

void PrefillLimit::note(Duration step, StepRows rows) {
  if (step <= Duration::zero()) return;  // too short to measure, or the clock is stopped
  noted_ = true;
  const auto ns = static_cast<double>(step.count());
  if (rows.prefill == 0 && rows.decode > 0) note_decode(ns);
  if (rows.prefill == 0) return;
  ++since_measured_;
  if (rows.decode == 0) return note_alone(ns, rows.prefill);
  if (decode_ns_) note_mixed(ns, rows.prefill);
}

std::optional<double> PrefillLimit::row_ns() const {
  if (!mixed_ns_) return std::nullopt;
  return *mixed_ns_ / *mixed_rows_;
}

void PrefillLimit::note_decode(double ns) {
  const bool is_other = decode_ns_ && differs(ns, *decode_ns_, kDecodeChange);
  decode_ns_.add(ns);
  unexpected_ = 0;
  const bool repeats = is_other && repeated_measurements_ + 1 < RecentMedian::kTimes;
  repeated_measurements_ = repeats ? repeated_measurements_ + 1 : 0;
  since_measured_ = repeats ? kMeasureInterval : 0;
}

/// True when the step's duration agrees with the model, or while r is unknown.
bool PrefillLimit::is_expected(double ns, std::uint32_t rows) const {
  return !mixed_rows_ ||
         !differs(ns, *decode_ns_ + *row_ns() * static_cast<double>(rows), kUnexpected);
}

void PrefillLimit::note_mixed(double ns, std::uint32_t work) {
  const auto rows = static_cast<double>(work);
  unexpected_ = is_expected(ns, work) ? 0 : unexpected_ + 1;
  if (unexpected_ > 0 && since_measured_ >= kLeastInterval) {  // d may be outdated
    if (unexpected_ >= kUnexpectedSteps) since_measured_ = kMeasureInterval;
    return;
  }
  double above_ns = std::max(0.0, ns - *decode_ns_);
  if (mixed_rows_) {
    const double expected_ns = std::max(kDelayShare * *decode_ns_, *row_ns() * rows);
    above_ns = std::min(above_ns, BoundedAverage::kMostStall * expected_ns);
  }
  mixed_ns_.add(above_ns);
  mixed_rows_.add(rows);
  const double whole = std::floor(allowed_rows_ + row_fraction_);
  if (rows == whole) row_fraction_ += allowed_rows_ - whole;
  last_rows_ = rows;
  allowed_rows_ = std::min(most_rows(), rows_in(kDelayShare * *decode_ns_));
}

}  // namespace leasehold
