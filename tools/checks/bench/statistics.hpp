/// What a set of measured values says. Pure.
#pragma once

#include <cstddef>
#include <vector>

namespace leasehold::bench {

/// Quantiles are values that were measured (nearest rank), never interpolated: with fewer than 1000
/// values p99.9 is the largest.
struct Distribution {
  std::size_t count = 0;  ///< 0: the rest is 0 and says nothing.
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double p999 = 0;
  double max = 0;
};

/// The smallest value that at least `share` of all are not above. Precondition: sorted, not empty,
/// 0 < share <= 1.
double quantile(const std::vector<double>& sorted, double share);

Distribution distribution_of(std::vector<double> values);

/// 0 for none.
double median_of(std::vector<double> values);

}  // namespace leasehold::bench
