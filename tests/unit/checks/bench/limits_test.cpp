#include "tests/checks/bench/limits.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/support/test_paths.hpp"

using namespace leasehold;
using namespace leasehold::bench;

namespace {

const nlohmann::json kReport = {
    {"t_refuse_us", {{"p99", 24.0}}}, {"unit_us", 2.0}, {"zero", 0}, {"cycles_per_s", 5100.0}};

LimitCheck judge(const std::string& limit) {
  const auto limits = parse_limits(R"({"limits":[)" + limit + "]}");
  REQUIRE(limits);
  return check_limits(kReport, *limits).at(0);
}

}  // namespace

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
