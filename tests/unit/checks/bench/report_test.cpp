// What a report shows, what --check compares, and when it fails.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/checks/bench/limits.hpp"
#include "tests/checks/bench/report.hpp"
#include "tests/checks/bench/revoke_bench.hpp"
#include "tests/checks/bench/run_report.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::bench {
namespace {

ClockRun run_with(std::uint32_t threads, std::vector<ClockSample> samples) {
  return {.setup = {.model = "demo", .tenants = 8, .threads = threads},
          .samples = std::move(samples)};
}

const nlohmann::json kReport = {
    {"t_refuse_us", {{"p99", 24.0}}}, {"unit_us", 2.0}, {"zero", 0}, {"cycles_per_s", 5100.0}};

LimitCheck judge(const std::string& limit) {
  const auto limits = parse_limits(R"({"limits":[)" + limit + "]}");
  REQUIRE(limits);
  return check_limits(kReport, *limits).at(0);
}

/// Checks a figure of 2 of the subcommand, under `key`, against this file of limits.
Result<int> check(const std::string& subcommand, const std::string& key,
                  const std::string& limits) {
  const auto directory = TemporaryDirectory::create("run-report").value();
  const std::string path = directory.path() / "limits.json";
  std::ofstream(path) << limits;
  return run_report({.name = subcommand, .limits_path = path}, [&key] {
    return Result<Report>(Report{.json = {{key, {{"figure", 2.0}}}}, .text = ""});
  });
}

std::string at_most(const std::string& name, int most) {
  return R"({"limits": [{"name": ")" + name + R"(", "max": )" + std::to_string(most) + "}]}";
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

TEST_CASE("bench: a value equal to a limit is within it") {
  CHECK(judge(R"({"name":"t_refuse_us.p99","max":24})").ok);
  CHECK_FALSE(judge(R"({"name":"t_refuse_us.p99","max":23.9})").ok);
  CHECK(judge(R"({"name":"cycles_per_s","min":5100})").ok);
  CHECK_FALSE(judge(R"({"name":"cycles_per_s","min":5101})").ok);
}

TEST_CASE("bench: a missing value is not within its limit") {
  const LimitCheck missing = judge(R"({"name":"t_quiet_us.p99","max":1000000})");
  CHECK_FALSE(missing.ok);
  CHECK_FALSE(missing.value);
  CHECK_FALSE(judge(R"({"name":"t_refuse_us","max":1000000})").ok);
}

TEST_CASE("bench: a checked figure is shown with the number of its samples") {
  const auto limits = parse_limits(R"({"limits":[{"name":"a.p99","max":3},{"name":"b","max":1}]})");
  const auto checks = check_limits({{"a", {{"n", 120}, {"p99", 2.5}}}, {"b", 0}}, limits.value());
  CHECK(checks.at(0).samples == 120.0);
  CHECK_FALSE(checks.at(1).samples);
  const std::string text = limit_checks_text(checks);
  CHECK(text.find("2.5      120    -    3  ok") != std::string::npos);
}

TEST_CASE("bench: a limit may be relative to another value of the report") {
  CHECK(judge(R"({"name":"t_refuse_us.p99","per":"unit_us","max":12})").ok);
  CHECK_FALSE(judge(R"({"name":"t_refuse_us.p99","per":"unit_us","max":11.9})").ok);
  CHECK_FALSE(judge(R"({"name":"t_refuse_us.p99","per":"unit_ms","max":1e9})").ok);
  CHECK_FALSE(judge(R"({"name":"t_refuse_us.p99","per":"zero","max":1e9})").ok);
}

TEST_CASE("bench: a malformed limits file is rejected with its entry") {
  for (const std::string text :
       {"", "[]", "{}", R"({"limits":1})", R"({"limits":[1]})", R"({"limits":[{"max":1}]})",
        R"({"limits":[{"name":"a"}]})", R"({"limits":[{"name":"a","max":"1"}]})",
        R"({"limits":[{"name":"a","max":1,"mix":2}]})",
        R"({"limits":[{"name":"a","max":1,"per":2}]})"}) {
    CAPTURE(text);
    const auto limits = parse_limits(text);
    REQUIRE_FALSE(limits);
    CHECK(limits.error().code == Errc::BadRequest);
  }
}

TEST_CASE("bench: the limits file in the tree parses and names each clock") {
  std::ifstream file(source_dir() + "/tests/checks/limits/bench_limits.json");
  const auto limits = parse_limits({std::istreambuf_iterator<char>(file), {}});
  REQUIRE(limits);
  for (const char* name : {"t_refuse_in_step_us", "t_error_us", "t_quiet_us", "t_reuse_us"}) {
    CAPTURE(name);
    const std::string path = std::string("without_run_queue_delay.") + name + ".p99";
    CHECK(std::ranges::find(*limits, path, &Limit::name) != limits->end());
  }
}

TEST_CASE("bench: a figure beyond the limit of its command exits with 1") {
  const auto& [subcommand, key] =
      GENERATE(table<std::string, std::string>({{"engine", "engine"},
                                                {"serve", "serve"},
                                                {"swap", "swap"},
                                                {"confine", "confine"},
                                                {"recover", "recover"},
                                                {"peer", "peer"},
                                                {"peer-serve", "peer_serve"},
                                                {"gateway", "gateway"},
                                                {"http", "http"},
                                                {"speculate", "speculate"},
                                                {"revoke", "storm"}}));
  CHECK(check(subcommand, key, at_most(key + ".figure", 1)).value() == 1);
  CHECK(check(subcommand, key, at_most(key + ".figure", 2)).value() == 0);
}

TEST_CASE("bench: a check without a limit of the command is an error") {
  const std::string subcommand = GENERATE(as<std::string>{}, "http", "revoke", "context");
  const Result<int> done = check(subcommand, "serve", at_most("serve.figure", 1));
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::BadRequest);
}

TEST_CASE("bench: a limit whose first key no subcommand has is an error") {
  const std::string limits =
      R"({"limits": [{"name": "storm.figure", "max": 2}, {"name": "stom.figure", "max": 2}]})";
  const Result<int> done = check("revoke", "storm", limits);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::BadRequest);
  CHECK_THAT(done.error().detail, Catch::Contains("measures stom.figure"));
}

TEST_CASE("bench: each limit in the tree is of a subcommand") {
  const auto& [file, subcommand] =
      GENERATE(table<std::string, std::string>({{"bench_limits.json", "revoke"},
                                                {"avx2_peer_limits.json", "peer"},
                                                {"avx512_peer_limits.json", "peer"},
                                                {"quick_gateway_limits.json", "gateway"},
                                                {"quick_http_limits.json", "http"},
                                                {"quick_recover_limits.json", "recover"},
                                                {"quick_serve_limits.json", "serve"}}));
  const std::string path = source_dir() + "/tests/checks/limits/" + file;
  const Result<int> done = run_report({.name = subcommand, .limits_path = path}, [] {
    return Result<Report>(Report{.json = {}, .text = ""});
  });
  CHECK(done.value() == 1);  // nothing was measured
}

TEST_CASE("bench: the plot has a line for a curve with values and only a name for one without") {
  const std::string svg = percentile_svg(
      {{.title = "a & b", .curves = {{"t_refuse", {3, 1, 2}, 25}, {"t_error", {}, 0}}}});
  CHECK_THAT(svg, Catch::Contains("a &amp; b"));
  CHECK_THAT(svg, Catch::Contains("t_refuse"));
  CHECK_THAT(svg, Catch::Contains("t_error"));
  CHECK(svg.find("<polyline") == svg.rfind("<polyline"));
  CHECK(svg.find("<polyline") != std::string::npos);
}

TEST_CASE("bench: the plot draws slower values higher, and all inside the picture") {
  const auto y_of = [](double us) {
    const std::string svg = percentile_svg({{.title = "", .curves = {{"x", {us}, 0}}}});
    const auto comma = svg.find(',', svg.find("points=\""));
    return std::stod(svg.substr(comma + 1));
  };
  CHECK(y_of(1000) < y_of(10));
  CHECK(y_of(1e12) == y_of(1e11));
  CHECK(y_of(0) == y_of(1));
}

}  // namespace leasehold::bench
