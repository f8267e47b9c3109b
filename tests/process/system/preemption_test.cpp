/// Requests that together need more blocks than their tenant may hold, with real processes.
#include <catch2/catch.hpp>

#include "tests/support/lease_streams.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kTightRequests = 6;
constexpr std::uint32_t kLongText = 400;  // 26 blocks and one for the record

}  // namespace

TEST_CASE("preemption: requests beyond their tenant's blocks wait in turn, and get the same text") {
  const bool has_swap = GENERATE(false, true);
  CAPTURE(has_swap);
  // Pauses make rows slower, but not copies: swapping is cheaper then, however loaded the machine
  // is.
  System system({.broker_arguments = {"--swap-capacity", has_swap ? "64MiB" : "0"},
                 .worker_arguments = {"--slow-motion-us", "1"}});
  system.admit("calm", {"--ttl-ms", "600000"});
  system.admit("tight", {"--ttl-ms", "600000", "--max-blocks", "102"});
  LeaseStreams calm(system, "calm");
  LeaseStreams tight(system, "tight");
  for (std::uint32_t i = 0; i < kTightRequests; ++i) calm.submit(i, kLongText);
  calm.wait_for_ends(kTightRequests);
  REQUIRE(calm.preemptions == 0);

  for (std::uint32_t i = 0; i < kTightRequests; ++i) tight.submit(i, kLongText);
  tight.wait_for_ends(kTightRequests);

  CHECK(tight.preemptions > 0);
  CHECK((tight.swaps > 0) == has_swap);
  for (const auto& [number, end] : tight.ends) {
    CAPTURE(number);
    CHECK(end == "MaxTokensReached");
    CHECK(tight.tokens[number].size() == kLongText);
    CHECK((tight.tokens[number] == calm.tokens[number]));
  }
}

}  // namespace leasehold::testing
