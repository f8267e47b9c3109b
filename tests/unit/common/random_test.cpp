#include "common/random.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>

using namespace leasehold;

TEST_CASE("random: the numbers are those of SplitMix64") {
  // The published sequences of the reference code for the seeds 0 and 1234567.
  CHECK(random_at(0, 0) == 0xE220'A839'7B1D'CDAFull);
  CHECK(random_at(0, 1) == 0x6E78'9E6A'A1B9'65F4ull);
  CHECK(random_at(0, 2) == 0x06C4'5D18'8009'454Full);
  CHECK(random_at(1234567, 0) == 6457827717110365317ull);
  CHECK(random_at(1234567, 1) == 3203168211198807973ull);
  CHECK(random_at(1234567, 4) == 16408922859458223821ull);
}

TEST_CASE("random: a walk gives the numbers of its positions") {
  SeededRandom walk(7);
  for (std::uint64_t position = 0; position < 10; ++position)
    CHECK(walk() == random_at(7, position));
}

TEST_CASE("random: below(n) is less than n") {
  SeededRandom walk(7);
  for (const std::uint64_t bound : {1ull, 2ull, 3ull, 1000ull}) {
    for (int i = 0; i < 100; ++i) CHECK(walk.below(bound) < bound);
  }
}

TEST_CASE("random: a unit float has 24 bits and stays below one") {
  CHECK(random_unit_at(0, 0) == static_cast<float>(0xE220A8) / 16777216.0f);
  for (std::uint64_t position = 0; position < 1000; ++position) {
    const float x = random_unit_at(7, position);
    CHECK((x >= 0.0f && x < 1.0f));
  }
}

TEST_CASE("random: a generated request id is req- and 12 hex digits, new each time") {
  const std::string id = mint_request_id();
  CHECK(id.size() == 16);
  CHECK(id.starts_with("req-"));
  CHECK(std::all_of(id.begin() + 4, id.end(),
                    [](unsigned char c) { return std::isdigit(c) || (c >= 'a' && c <= 'f'); }));
  CHECK(mint_request_id() != id);
}
