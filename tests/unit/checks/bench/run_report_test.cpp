// What --check compares, and when it fails.
#include "tests/checks/bench/run_report.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "common/machine/temporary_directory.hpp"
#include "tests/support/test_paths.hpp"

using namespace leasehold;
using namespace leasehold::bench;

namespace {

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

TEST_CASE("bench: a figure beyond the limit of its command exits with 1") {
  const auto& [subcommand, key] =
      GENERATE(table<std::string, std::string>({{"engine", "engine"},
                                                {"serve", "serve"},
                                                {"swap", "swap"},
                                                {"confine", "confine"},
                                                {"recover", "recover"},
                                                {"peer", "peer"},
                                                {"peer-serve", "peer_serve"},
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
                                                {"quick_http_limits.json", "http"},
                                                {"quick_recover_limits.json", "recover"},
                                                {"quick_serve_limits.json", "serve"}}));
  const std::string path = source_dir() + "/tests/checks/limits/" + file;
  const Result<int> done = run_report({.name = subcommand, .limits_path = path}, [] {
    return Result<Report>(Report{.json = {}, .text = ""});
  });
  CHECK(done.value() == 1);  // nothing was measured
}
