#include "tests/checks/bench/figures.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/checks/bench/statistics.hpp"

namespace leasehold::bench {
namespace {

const Samples kSamples = {{"a.calm_us", {4, 1, 2}}, {"a.busy_us", {8, 9, 2}}, {"zero", {0, 0}}};

nlohmann::json report_of(const FigureRow& row) {
  nlohmann::json report;
  add_figures(report, kSamples, {&row, 1});
  return report;
}

std::vector<double> one_to(int last) {
  std::vector<double> values(static_cast<std::size_t>(last));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

}  // namespace

TEST_CASE("bench: a row gives the statistic of its samples a place in the report") {
  CHECK(report_of({"a.calm_us"})["a"]["calm_us"] ==
        nlohmann::json{
            {"n", 3}, {"p50", 2.0}, {"p90", 4.0}, {"p99", 4.0}, {"p99_9", 4.0}, {"max", 4.0}});
  CHECK(report_of({"x.least", Statistic::Least, "a.calm_us"})["x"]["least"] == 1.0);
  CHECK(report_of({"x", Statistic::P99, "a.busy_us"})["x"] == 9.0);
  CHECK(report_of({"x", Statistic::Median, "none"})["x"] == 0.0);
}

TEST_CASE("bench: a ratio compares the same statistic, and is 0 beside nothing") {
  CHECK(report_of({"x", Statistic::Median, "a.busy_us", "a.calm_us"})["x"] == 4.0);
  CHECK(report_of({"x", Statistic::Least, "a.busy_us", "a.calm_us"})["x"] == 2.0);
  CHECK(report_of({"x", Statistic::Median, "a.busy_us", "zero"})["x"] == 0.0);
}

TEST_CASE("bench: all samples have their figures under their names, where limits find them") {
  const nlohmann::json report = figures_of(kSamples, Statistic::Median);
  CHECK(report == nlohmann::json{{"a", {{"calm_us", 2.0}, {"busy_us", 8.0}}}, {"zero", 0.0}});
  CHECK(number_at(report, "a.busy_us") == 8.0);
  CHECK_FALSE(number_at(report, "a"));
  CHECK_FALSE(number_at(report, "a.busy_us.p50"));
  CHECK_FALSE(number_at(report, "b"));
}

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

}  // namespace leasehold::bench
