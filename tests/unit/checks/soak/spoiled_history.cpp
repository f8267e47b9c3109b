#include "tests/unit/checks/soak/spoiled_history.hpp"

#include <catch2/catch.hpp>
#include <utility>

#include "tests/checks/soak/judge.hpp"

namespace leasehold::soak {

std::vector<std::string> broken(History good, const Spoil& spoil) {
  spoil(good);
  std::vector<std::string> promises;
  for (const demo::Check& check : judge(good)) {
    if (!check.ok) promises.push_back(check.promise);
  }
  return promises;
}

void check_finds(History good, const std::string& about, const Spoil& spoil) {
  CAPTURE(about);
  const auto promises = broken(std::move(good), spoil);
  REQUIRE(promises.size() == 1);
  CHECK(promises.front().find(about) != std::string::npos);
}

}  // namespace leasehold::soak
