#include "tests/checks/bench/figures.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold::bench;

namespace {

const Samples kSamples = {{"a.calm_us", {4, 1, 2}}, {"a.busy_us", {8, 9, 2}}, {"zero", {0, 0}}};

nlohmann::json report_of(const FigureRow& row) {
  nlohmann::json report;
  add_figures(report, kSamples, {&row, 1});
  return report;
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
