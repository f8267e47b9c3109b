// What the units in tools/systemd state about the programs.
#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "common/cli/command_line.hpp"
#include "tests/support/test_paths.hpp"

using namespace leasehold;

namespace {

/// The numbers of a key in a unit.
std::set<int> numbers_of(const std::string& key, const std::string& unit) {
  std::ifstream file(source_dir() + "/tools/systemd/" + unit);
  std::set<int> numbers;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key + "=")) continue;
    std::istringstream words(line.substr(key.size() + 1));
    for (int number = 0; words >> number;) numbers.insert(number);
  }
  return numbers;
}

std::set<int> codes(std::initializer_list<Errc> errors) {
  std::set<int> codes{kExitUsage};
  for (const Errc error : errors) codes.insert(exit_code(error));
  return codes;
}

}  // namespace

TEST_CASE("systemd units: the exit codes that end the restarts of each") {
  const std::string key = "RestartPreventExitStatus";
  using enum Errc;
  CHECK(numbers_of(key, "leasehold-broker.service").empty());
  CHECK(numbers_of(key, "leasehold-worker@.service") == codes({UnsupportedModel}));
  CHECK(numbers_of(key, "leasehold-monitor.service") == codes({}));
  CHECK(numbers_of(key, "leasehold-gateway.service") == codes({}));
}

TEST_CASE("systemd units: no retryable error ends the restarts") {
  for (const std::string unit : {"leasehold-broker.service", "leasehold-worker@.service",
                                 "leasehold-monitor.service", "leasehold-gateway.service"}) {
    CAPTURE(unit);
    for (const int code : numbers_of("RestartPreventExitStatus", unit)) {
      const auto error = errc_from_exit_code(code);
      if (error) CHECK_FALSE(is_retryable(*error));
    }
  }
}

TEST_CASE("systemd units: all are started again without limit") {
  for (const std::string unit : {"leasehold-broker.service", "leasehold-worker@.service",
                                 "leasehold-monitor.service", "leasehold-gateway.service"})
    CHECK(numbers_of("StartLimitIntervalSec", unit) == std::set{0});
}
