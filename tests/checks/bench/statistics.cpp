#include "tests/checks/bench/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/expects.hpp"

namespace leasehold::bench {

double quantile(const std::vector<double>& sorted, double share) {
  expects(!sorted.empty() && share > 0 && share <= 1,
          "a quantile needs values and a share in (0, 1]");
  // The small term absorbs rounding of the product: 0.9 × 10 must be rank 9, not 10.
  const double rank = std::ceil(share * static_cast<double>(sorted.size()) - 1e-9);
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

Distribution distribution_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  return {.count = values.size(),
          .p50 = quantile(values, 0.5),
          .p90 = quantile(values, 0.9),
          .p99 = quantile(values, 0.99),
          .p999 = quantile(values, 0.999),
          .max = values.back()};
}

nlohmann::json to_json(const Distribution& distribution) {
  return {{"n", distribution.count}, {"p50", distribution.p50},    {"p90", distribution.p90},
          {"p99", distribution.p99}, {"p99_9", distribution.p999}, {"max", distribution.max}};
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return quantile(values, 0.5);
}

}  // namespace leasehold::bench
