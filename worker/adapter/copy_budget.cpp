#include "worker/adapter/copy_budget.hpp"

#include <algorithm>

namespace leasehold {
namespace {

constexpr double kNewestWeight = 0.25;  // of a measurement in the average

}  // namespace

std::uint64_t CopyBudget::after_step(Duration step) {
  const double share_ns = kShare * static_cast<double>(step.count());
  const double min_ns = static_cast<double>(kMinBytes) / bytes_per_ns_;
  // Time that was saved before a long pause must not become a long copy.
  saved_ns_ = std::min(saved_ns_ + share_ns, std::max(share_ns, min_ns));
  const auto bytes = static_cast<std::uint64_t>(saved_ns_ * bytes_per_ns_);
  return bytes < kMinBytes ? 0 : bytes / kMinBytes * kMinBytes;
}

void CopyBudget::copied(std::uint64_t bytes, Duration duration) {
  const double took_ns = std::max(1.0, static_cast<double>(duration.count()));
  const double measured = static_cast<double>(bytes) / took_ns;
  bytes_per_ns_ += kNewestWeight * (measured - bytes_per_ns_);
  saved_ns_ = std::max(0.0, saved_ns_ - took_ns);
}

}  // namespace leasehold
