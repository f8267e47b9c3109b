#include "worker/schedule/prefill_limit.hpp"

#include <algorithm>

namespace leasehold {
namespace {

/// While r is unknown.
constexpr std::uint32_t kFirstRows = 16;
constexpr double kNewSample = 0.125;  // its part of a moving average
constexpr double kLargestSample = 4;  // times the average: the machine may stall in a step

void add_sample(std::optional<double>& average, double sample) {
  if (!average || *average == 0) {
    average = sample;
    return;
  }
  *average += kNewSample * (std::min(sample, kLargestSample * *average) - *average);
}

}  // namespace

std::uint32_t PrefillLimit::rows(std::uint32_t decode_rows, std::uint32_t budget) const {
  if (decode_rows == 0 || !noted_) return budget;
  if (!decode_ns_ || since_measured_ >= kMeasureInterval) return 0;
  if (!row_ns_) return std::min(kFirstRows, budget);
  const double allowed_ns = *decode_ns_ * kDelayShare;
  if (allowed_ns >= *row_ns_ * budget) return budget;
  return std::max(1u, static_cast<std::uint32_t>(allowed_ns / *row_ns_));
}

void PrefillLimit::note(Duration step, StepRows rows) {
  if (step <= Duration::zero()) return;  // too short for the clock, or a clock that does not run
  noted_ = true;
  const auto ns = static_cast<double>(step.count());
  if (rows.prefill == 0) {
    if (rows.decode > 0) add_sample(decode_ns_, ns);
    since_measured_ = 0;
    return;
  }
  ++since_measured_;
  if (rows.decode > 0 && decode_ns_) {
    add_sample(row_ns_, std::max(0.0, ns - *decode_ns_) / rows.prefill);
  }
}

}  // namespace leasehold
