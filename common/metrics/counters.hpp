/// Numbers that one thread counts and another one reads.
///
/// No call waits: a scrape cannot delay the thread that counts. Each number is exact, but two
/// numbers read one after another may be from different moments.
/// Threads: any, except where a member says otherwise.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "common/clock.hpp"

namespace leasehold::metrics {

class Counter {
 public:
  // Relaxed: readers of a count read no other memory that depends on it.
  void add(std::uint64_t count = 1) { value_.fetch_add(count, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Upper bounds of buckets, inclusive and ascending. The last bucket has no bound and is not
/// listed.
inline constexpr std::array<double, 20> kLatencyBounds{
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5,
    0.75,  1,      2.5,   5,    7.5,   10,   20,    40,  80,   160};
/// Bucket bounds for the latencies of a revocation, from one microsecond on.
inline constexpr std::array<double, 20> kClockBounds{
    0.000001, 0.0000025, 0.000005, 0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001,
    0.0025,   0.005,     0.01,     0.025,   0.05,     0.1,     0.25,   1,       5,      60};

/// Counts of durations by bucket.
struct HistogramCounts {
  std::vector<double> bounds_s;       ///< Ascending.
  std::vector<std::uint64_t> counts;  ///< Per bucket, not cumulative; one more than bounds.
  double sum_s = 0;
};

class Histogram {
 public:
  static constexpr std::size_t kMaxBounds = 20;

  /// Precondition: at most kMaxBounds bounds, which outlive it.
  explicit Histogram(std::span<const double> bounds_s) : bounds_s_(bounds_s) {}

  /// A negative duration counts as 0.
  void observe(Duration value);
  HistogramCounts counts() const;

 private:
  std::span<const double> bounds_s_;
  std::array<std::atomic<std::uint64_t>, kMaxBounds + 1> counts_{};
  std::atomic<std::int64_t> sum_ns_{0};
};

}  // namespace leasehold::metrics
