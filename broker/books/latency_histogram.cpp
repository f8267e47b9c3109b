#include "broker/books/latency_histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace leasehold {

std::size_t LatencyHistogram::bucket_of(std::uint64_t value) {
  const std::uint64_t bounded = std::min(value, (std::uint64_t{1} << kPowers) - 1);
  if (bounded < kBucketsPerPower) return static_cast<std::size_t>(bounded);
  constexpr std::uint64_t kBits = std::bit_width(kBucketsPerPower) - 1;
  const std::uint64_t shift = std::bit_width(bounded) - 1 - kBits;
  const std::uint64_t within = bounded >> shift;  // kBucketsPerPower … 2 · kBucketsPerPower - 1
  return static_cast<std::size_t>(shift * kBucketsPerPower + within);
}

std::uint64_t LatencyHistogram::highest_of(std::size_t bucket) {
  if (bucket < 2 * kBucketsPerPower) return bucket;
  const std::uint64_t shift = bucket / kBucketsPerPower - 1;
  const std::uint64_t within = bucket % kBucketsPerPower + kBucketsPerPower;
  return ((within + 1) << shift) - 1;
}

void LatencyHistogram::add(Duration value) {
  const Duration counted = std::max(value, Duration::zero());
  counts_.resize(kBuckets);
  ++counts_[bucket_of(static_cast<std::uint64_t>(counted.count()))];
  ++count_;
  max_ = std::max(max_, counted);
  sum_ += counted;
}

void LatencyHistogram::add(const LatencyHistogram& other) {
  if (other.count_ == 0) return;
  counts_.resize(kBuckets);
  for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

std::uint64_t LatencyHistogram::count_below(std::uint64_t power) const {
  const std::size_t end = std::min(counts_.size(), bucket_of(std::uint64_t{1} << power));
  return std::accumulate(counts_.begin(), counts_.begin() + static_cast<std::ptrdiff_t>(end),
                         std::uint64_t{0});
}

Duration LatencyHistogram::quantile(double share) const {
  const double rank = std::max(1.0, std::ceil(share * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (counts_[i] != 0 && static_cast<double>(seen) >= rank) {
      return std::min(max_, Duration(static_cast<std::int64_t>(highest_of(i))));
    }
  }
  return max_;
}

void LatencyHistory::add(Duration value, TimePoint now) {
  since_start_.add(value);
  const std::int64_t number = now.boottime_ns / kStep.count();
  Step& step = steps_[static_cast<std::size_t>(number % kSteps)];
  if (step.number != number) step = {.number = number, .values = {}};
  step.values.add(value);
}

LatencyHistogram LatencyHistory::last_minute(TimePoint now) const {
  const std::int64_t current = now.boottime_ns / kStep.count();
  LatencyHistogram all;
  for (const Step& step : steps_) {
    if (step.number > current - kSteps) all.add(step.values);
  }
  return all;
}

}  // namespace leasehold
