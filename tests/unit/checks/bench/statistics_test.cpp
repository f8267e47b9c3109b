#include "tests/checks/bench/statistics.hpp"

#include <catch2/catch.hpp>
#include <numeric>

using namespace leasehold::bench;

namespace {

std::vector<double> one_to(int last) {
  std::vector<double> values(static_cast<std::size_t>(last));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

}  // namespace

TEST_CASE("bench: a quantile is a measured value, by nearest rank") {
  const auto values = one_to(10);
  CHECK(quantile(values, 0.5) == 5);
  CHECK(quantile(values, 0.51) == 6);
  CHECK(quantile(values, 0.9) == 9);
  CHECK(quantile(values, 0.99) == 10);
  CHECK(quantile(values, 1) == 10);
}

TEST_CASE("bench: rounding does not raise the rank of an exact share") {
  const auto values = one_to(1000);
  CHECK(quantile(values, 0.9) == 900);
  CHECK(quantile(values, 0.99) == 990);
  CHECK(quantile(values, 0.999) == 999);
}

TEST_CASE("bench: a distribution sorts its values and keeps the outlier") {
  const Distribution seen = distribution_of({5, 1, 4, 2, 1000, 3});
  CHECK(seen.count == 6);
  CHECK(seen.p50 == 3);
  CHECK(seen.p99 == 1000);
  CHECK(seen.max == 1000);
}

TEST_CASE("bench: the distribution of no values is empty") {
  CHECK(distribution_of({}).count == 0);
  CHECK(median_of({}) == 0);
}
