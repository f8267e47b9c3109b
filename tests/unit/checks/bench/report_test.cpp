#include "tests/checks/bench/report.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/checks/bench/revoke_bench.hpp"

using namespace leasehold::bench;

namespace {

ClockRun run_with(std::uint32_t threads, std::vector<ClockSample> samples) {
  return {.setup = {.model = "demo", .tenants = 8, .threads = threads},
          .samples = std::move(samples)};
}

}  // namespace

TEST_CASE("bench: the headline covers the runs with a free core, and every run is listed") {
  const auto json = clocks_json(
      {run_with(1, {{.times = {.refuse_us = 10}}}), run_with(2, {{.times = {.refuse_us = 99}}})},
      1);
  CHECK(json["t_refuse_us"]["n"] == 1);
  CHECK(json["t_refuse_us"]["max"] == 10);
  REQUIRE(json["runs"].size() == 2);
  CHECK(json["runs"][1]["t_refuse_us"]["max"] == 99);
}

TEST_CASE("bench: the run-queue delay of a sample is left out of its own clocks only") {
  const auto json =
      clocks_json({run_with(1, {{.times = {.refuse_us = 10, .error_us = 80}},
                                {.times = {.refuse_us = 5000, .error_us = 5100},
                                 .run_queue_delay = {.refuse_us = 4970, .error_us = 6000}}})},
                  1);
  CHECK(json["t_refuse_us"]["max"] == 5000);
  CHECK(json["without_run_queue_delay"]["t_refuse_us"]["n"] == 2);
  CHECK(json["without_run_queue_delay"]["t_refuse_us"]["max"] == 30);
  CHECK(json["without_run_queue_delay"]["t_refuse_us"]["p50"] == 10);
  CHECK(json["without_run_queue_delay"]["t_error_us"]["max"] == 80);
  CHECK(json["without_run_queue_delay"]["t_error_us"]["p50"] == 0);
}

TEST_CASE("bench: a clock without a value is left out, not counted as zero") {
  const auto json = clocks_json({run_with(1, {{.times = {.refuse_us = -1, .error_us = 7}}})}, 1);
  CHECK(json["t_refuse_us"]["n"] == 0);
  CHECK(json["t_error_us"]["n"] == 1);
}

TEST_CASE("bench: a storm is reported as ratios to the calm windows") {
  const auto json = storm_json(
      {{"calm_inter_token_us", {100, 100, 200}}, {"storm_inter_token_us", {110, 110, 400}}});
  CHECK(json["p50_ratio"].get<double>() == Approx(1.1));
  CHECK(json["p99_ratio"].get<double>() == Approx(2.0));
}
