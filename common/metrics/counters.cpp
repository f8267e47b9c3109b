#include "common/metrics/counters.hpp"

#include <algorithm>

namespace leasehold::metrics {

void Histogram::observe(Duration value) {
  const Duration counted = std::max(value, Duration::zero());
  const double seconds = std::chrono::duration<double>(counted).count();
  const auto bucket = std::ranges::lower_bound(bounds_s_, seconds) - bounds_s_.begin();
  counts_[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  sum_ns_.fetch_add(counted.count(), std::memory_order_relaxed);
}

HistogramCounts Histogram::counts() const {
  HistogramCounts read{.bounds_s = {bounds_s_.begin(), bounds_s_.end()}, .counts = {}};
  for (std::size_t i = 0; i <= bounds_s_.size(); ++i)
    read.counts.push_back(counts_[i].load(std::memory_order_relaxed));
  read.sum_s = static_cast<double>(sum_ns_.load(std::memory_order_relaxed)) * 1e-9;
  return read;
}

}  // namespace leasehold::metrics
