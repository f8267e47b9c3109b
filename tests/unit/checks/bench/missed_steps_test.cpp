#include "tests/checks/bench/recover_bench.hpp"

#include <catch2/catch.hpp>

namespace leasehold::bench {
namespace {

const LeaseId kFirst{.slot = 1, .generation = 1};
const LeaseId kSecond{.slot = 2, .generation = 1};
const LeaseId kOther{.slot = 3, .generation = 1};

events::StampedEvent step(std::vector<LeaseId> leases) {
  return {.event = events::BatchedDecodeStep{.per_seq_leases = std::move(leases)}, .at = {}};
}

}  // namespace

TEST_CASE("missed steps: a text that has a row in every step misses none, also over two leases") {
  const std::vector steps{step({kFirst, kOther}), step({kOther, kFirst}), step({kSecond, kOther})};
  const MissedSteps seen = missed_steps(steps, {kFirst, kSecond});
  CHECK(seen.taken == 3);
  CHECK(seen.missed == 0);
  CHECK(seen.longest_gap == 1);
}

TEST_CASE("missed steps: the steps of others between two of the text's own are missed") {
  const std::vector steps{step({kOther}),          step({kFirst}), step({kOther}),  step({kOther}),
                          step({kSecond, kOther}), step({kOther}), step({kSecond}), step({kOther})};
  const MissedSteps seen = missed_steps(steps, {kFirst, kSecond});
  CHECK(seen.taken == 3);
  CHECK(seen.missed == 3);
  CHECK(seen.longest_gap == 3);
}

TEST_CASE("missed steps: a text without a step misses none") {
  CHECK(missed_steps(std::vector{step({kOther})}, {kFirst}).longest_gap == 0);
}

}  // namespace leasehold::bench
