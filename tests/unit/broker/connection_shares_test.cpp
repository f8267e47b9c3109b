#include "broker/server/connection_shares.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace leasehold;

TEST_CASE("connections: the largest user gives its oldest connection to a new user") {
  const std::vector<HeldConnection> held{{{1}, 7}, {{2}, 8}, {{3}, 8}, {{4}, 8}};
  CHECK(connection_to_close(held, 9) == ConnectionId{2});
  CHECK(connection_to_close(held, 7) == ConnectionId{2});
}

TEST_CASE("connections: a user does not gain from its own connections") {
  const std::vector<HeldConnection> held{{{1}, 7}, {{2}, 7}, {{3}, 8}, {{4}, 8}};
  CHECK_FALSE(connection_to_close(held, 7));
  CHECK_FALSE(connection_to_close(held, 8));
  CHECK(connection_to_close(held, 9) == ConnectionId{1});
}

TEST_CASE("connections: one that holds a lease is never closed") {
  const std::vector<HeldConnection> held{{{1}, 7, true}, {{2}, 7, true}, {{3}, 7}, {{4}, 8}};
  CHECK(connection_to_close(held, 9) == ConnectionId{3});
  const std::vector<HeldConnection> kept{{{1}, 7, true}, {{2}, 7, true}};
  CHECK_FALSE(connection_to_close(kept, 9));
  CHECK_FALSE(connection_to_close({}, 9));
}
