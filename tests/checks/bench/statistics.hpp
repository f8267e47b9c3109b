/// Quantiles of measured values. Pure.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace leasehold::bench {

/// Nearest-rank quantiles, each a measured value. With fewer than 1000 values p99.9 is the maximum.
struct Distribution {
  std::size_t count = 0;  ///< 0: all other fields are 0.
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double p999 = 0;
  double max = 0;
};

/// Nearest-rank quantile: the smallest value with at least `share` of the samples at or below it.
/// Precondition: sorted, not empty, 0 < share <= 1.
double quantile(const std::vector<double>& sorted, double share);

Distribution distribution_of(std::vector<double> values);

/// {"n", "p50", "p90", "p99", "p99_9", "max"}.
nlohmann::json to_json(const Distribution& distribution);

/// 0 if empty.
double median_of(std::vector<double> values);

}  // namespace leasehold::bench
