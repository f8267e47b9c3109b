#include "tests/checks/soak/canary.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

using namespace leasehold;
using namespace leasehold::soak;

namespace {

const Canary kAnn{.tenant = "ann", .tokens = {900, 17, 4, 33}};
const Canary kBob{.tenant = "bob", .tokens = {900, 17, 4, 34}};

/// Memory of zeros with a canary somewhere in it.
std::vector<std::byte> memory_with(const Canary& canary, std::size_t offset) {
  std::vector<std::byte> memory(4096);
  std::memcpy(memory.data() + offset, canary.tokens.data(),
              canary.tokens.size() * sizeof(std::int32_t));
  return memory;
}

}  // namespace

TEST_CASE("canary: found at every offset, and nothing else is") {
  for (const std::size_t offset : {0u, 1u, 2000u, 4080u}) {
    CAPTURE(offset);
    const auto memory = memory_with(kAnn, offset);
    CHECK(holds(memory, kAnn));
    CHECK_FALSE(holds(memory, kBob));
  }
  CHECK_FALSE(holds(std::vector<std::byte>(4096), kAnn));
}

TEST_CASE("canary: reports another tenant's canary in a stream, but not the tenant's own") {
  runner::CanaryReport report;
  const std::vector<std::int32_t> stream{1, 2, 900, 17, 4, 33, 5};
  find_canaries("ann", stream, std::vector{kAnn, kBob}, report);
  CHECK(report.foreign.empty());
  find_canaries("bob", stream, std::vector{kAnn, kBob}, report);
  REQUIRE(report.foreign.size() == 1);
  CHECK(report.foreign.front() == "the canary of ann is in the stream of bob");
}

TEST_CASE("canary: words depend on seed and number only, and are unique") {
  std::vector<std::string> words;
  for (std::uint64_t number = 0; number < 32; ++number) {
    words.push_back(canary_words(5, number));
    CHECK(words.back() == canary_words(5, number));
    words.push_back(canary_words(6, number));
  }
  std::ranges::sort(words);
  CHECK(std::ranges::adjacent_find(words) == words.end());
}
