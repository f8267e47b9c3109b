/// Quantiles of many durations in bounded memory.
///
/// Source: G. Tene, HdrHistogram (hdrhistogram.org): each power of two is cut into equal buckets,
/// so the relative error is bounded. Pure: time is an argument. Threads: one.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/clock.hpp"

namespace leasehold {

/// Counts values up to 2^40 ns (18 min); a longer value is counted as 2^40 ns. Takes 2.4 KiB once
/// it has a value.
class LatencyHistogram {
 public:
  /// A quantile exceeds the exact value by at most 1/kBucketsPerPower of that value.
  static constexpr std::uint64_t kBucketsPerPower = 8;

  /// A negative duration counts as 0.
  void add(Duration value);
  void add(const LatencyHistogram& other);

  std::uint64_t count() const { return count_; }
  /// The exact maximum.
  Duration max() const { return max_; }
  /// The exact sum of all values.
  Duration sum() const { return sum_; }
  /// The exact number of values below 2^power ns. Precondition: power is 3 … 39.
  std::uint64_t count_below(std::uint64_t power) const;
  /// Nearest rank: at least `share` of the values are at or below the result. Zero when empty.
  Duration quantile(double share) const;

 private:
  static constexpr std::uint64_t kPowers = 40;
  static constexpr std::size_t kBuckets = (kPowers - 2) * kBucketsPerPower;
  /// Index of the bucket for a value. A value below kBucketsPerPower has its own bucket; above,
  /// each power of two has kBucketsPerPower buckets.
  static std::size_t bucket_of(std::uint64_t value);
  static std::uint64_t highest_of(std::size_t bucket);

  std::vector<std::uint64_t> counts_;  ///< Empty until the first value.
  std::uint64_t count_ = 0;
  Duration max_{};
  Duration sum_{};
};

/// Keeps the durations since the start, and those of the last minute in steps of 5 s.
class LatencyHistory {
 public:
  void add(Duration value, TimePoint now);

  const LatencyHistogram& since_start() const { return since_start_; }
  /// The values of the last 55 to 60 s.
  LatencyHistogram last_minute(TimePoint now) const;

 private:
  static constexpr Duration kStep = std::chrono::seconds(5);
  static constexpr std::int64_t kSteps = 12;

  struct Step {
    std::int64_t number = -kSteps;  ///< Steps since boot; an entry of an earlier minute is stale.
    LatencyHistogram values;
  };

  LatencyHistogram since_start_;
  std::array<Step, kSteps> steps_;
};

}  // namespace leasehold
