#include "worker/schedule/prefill_limit.hpp"

#include <algorithm>

namespace leasehold {
namespace {

constexpr double kMostRows = 1 << 20;  // more than any budget

}  // namespace

std::uint32_t PrefillLimit::rows(std::uint32_t decode_rows, std::uint32_t budget) const {
  if (decode_rows == 0 || !noted_) return budget;
  if (!decode_ns_ || since_measured_ >= kMeasureInterval) return 0;
  return std::min(most_rows_, budget);
}

/// Precondition: d and r are known.
std::uint32_t PrefillLimit::affordable_rows() const {
  const double rows = *decode_ns_ * kDelayShare * *mixed_rows_ / std::max(1.0, *mixed_ns_);
  return static_cast<std::uint32_t>(std::clamp(rows, 1.0, kMostRows));
}

void PrefillLimit::note(Duration step, StepRows rows) {
  if (step <= Duration::zero()) return;  // too short for the clock, or a clock that does not run
  noted_ = true;
  const auto ns = static_cast<double>(step.count());
  if (rows.prefill == 0) {
    if (rows.decode > 0) decode_ns_.add_bounded(ns);
    since_measured_ = 0;
    return;
  }
  ++since_measured_;
  if (rows.decode > 0 && decode_ns_) note_mixed(std::max(0.0, ns - *decode_ns_), rows.prefill);
}

std::optional<double> PrefillLimit::row_ns() const {
  if (!mixed_ns_) return std::nullopt;
  return *mixed_ns_ / *mixed_rows_;
}

void PrefillLimit::note_mixed(double ns, std::uint32_t rows) {
  if (mixed_rows_) {
    const double expected_ns =
        std::max(kDelayShare * *decode_ns_, *mixed_ns_ / *mixed_rows_ * rows);
    ns = std::min(ns, BoundedAverage::kMostStall * expected_ns);
  }
  mixed_ns_.add(ns);
  mixed_rows_.add(rows);
  most_rows_ = std::min(std::max(kFirstRows, 2 * rows), affordable_rows());
}

}  // namespace leasehold
