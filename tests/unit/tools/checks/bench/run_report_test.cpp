// What --check compares, and when it fails.
#include "tools/checks/bench/run_report.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "common/temporary_directory.hpp"

using namespace leasehold;
using namespace leasehold::bench;

namespace {

/// Checks a figure of 2 of the command under `prefix` against this file of limits.
Result<int> check(const std::string& prefix, const std::string& limits) {
  const auto directory = TemporaryDirectory::create("run-report").value();
  const std::string path = directory.path() / "limits.json";
  std::ofstream(path) << limits;
  const std::string key = prefix.substr(0, prefix.size() - 1);
  return run_report({.name = key, .limits = prefix, .limits_path = path}, [&key] {
    return Result<Report>(Report{.json = {{key, {{"figure", 2.0}}}}, .text = ""});
  });
}

std::string at_most(const std::string& name, int most) {
  return R"({"limits": [{"name": ")" + name + R"(", "max": )" + std::to_string(most) + "}]}";
}

}  // namespace

TEST_CASE("bench: a figure beyond the limit of its command exits with 1") {
  const std::string prefix = GENERATE(as<std::string>{}, "engine.", "serve.", "swap.", "confine.",
                                      "recover.", "peer.", "peer_serve.", "http.", "speculate.");
  CHECK(check(prefix, at_most(prefix + "figure", 1)).value() == 1);
  CHECK(check(prefix, at_most(prefix + "figure", 2)).value() == 0);
}

TEST_CASE("bench: a check without a limit of the command is an error") {
  const Result<int> done = check("http.", at_most("serve.figure", 1));
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::BadRequest);
}
