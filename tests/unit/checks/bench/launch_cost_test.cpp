#include "tests/checks/bench/poll_cost.hpp"

#include <catch2/catch.hpp>

#include "tests/support/required.hpp"

namespace leasehold::bench {

TEST_CASE("launch cost: every launch is measured, whatever the number of threads") {
  const std::uint32_t threads = GENERATE(1, 2, 3);
  const Samples cost = testing::required(measure_launch(threads, 20));
  CHECK(cost.at("empty_us").size() == 20);
  CHECK(figure_of(cost, "empty_us") > 0);
  CHECK(cost.at("meeting_us").size() == 20);
}

}  // namespace leasehold::bench
