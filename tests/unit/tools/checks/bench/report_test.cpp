#include "tools/checks/bench/report.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold::bench;

namespace {

ClockRun run_with(std::uint32_t threads, std::vector<ClockSample> samples) {
  return {.setup = {.model = "demo", .tenants = 8, .threads = threads},
          .samples = std::move(samples)};
}

}  // namespace

TEST_CASE("bench: the headline covers the runs with a free core, and every run is listed") {
  const auto json =
      clocks_json({run_with(1, {{.refuse_us = 10}}), run_with(2, {{.refuse_us = 99}})}, 1);
  CHECK(json["t_refuse_us"]["n"] == 1);
  CHECK(json["t_refuse_us"]["max"] == 10);
  REQUIRE(json["runs"].size() == 2);
  CHECK(json["runs"][1]["t_refuse_us"]["max"] == 99);
}

TEST_CASE("bench: a flip during which the engine had no core is not undisturbed") {
  const auto json = clocks_json(
      {run_with(1, {{.refuse_us = 10}, {.refuse_us = 5000, .engine_waited_us = 4990}})}, 1);
  CHECK(json["t_refuse_us"]["max"] == 5000);
  CHECK(json["undisturbed"]["t_refuse_us"]["n"] == 1);
  CHECK(json["undisturbed"]["t_refuse_us"]["max"] == 10);
}

TEST_CASE("bench: a clock without a value is left out, not counted as zero") {
  const auto json = clocks_json({run_with(1, {{.refuse_us = -1, .error_us = 7}})}, 1);
  CHECK(json["t_refuse_us"]["n"] == 0);
  CHECK(json["t_error_us"]["n"] == 1);
}

TEST_CASE("bench: a storm is reported as ratios to the calm windows") {
  const auto json = storm_json({.calm_us = {100, 100, 200}, .storm_us = {110, 110, 400}});
  CHECK(json["p50_ratio"].get<double>() == Approx(1.1));
  CHECK(json["p99_ratio"].get<double>() == Approx(2.0));
}
