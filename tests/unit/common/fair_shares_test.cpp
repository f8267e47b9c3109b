#include "common/fair_shares.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace leasehold;

TEST_CASE("fair shares: one owner gets half, and a later owner still gets a share") {
  FairShares<std::string> shares(12);
  while (shares.may_take_more("a")) shares.take("a");
  CHECK(shares.held_by("a") == 6);
  while (shares.may_take_more("b")) shares.take("b");
  CHECK(shares.held_by("b") == 3);
  CHECK_FALSE(shares.may_take_more("a"));
  shares.give_back("a", 4);
  CHECK(shares.may_take_more("b"));
  CHECK(shares.taken() == 5);
  CHECK(shares.largest() == "b");
}

TEST_CASE("fair shares: however many owners take all they can, a newcomer finds a place") {
  FairShares<int> shares(64);
  for (int owner = 0; owner < 20; ++owner) {
    REQUIRE(shares.may_take_more(owner));
    while (shares.may_take_more(owner)) shares.take(owner);
    if (shares.taken() + 1 >= shares.capacity()) break;
  }
  CHECK(shares.taken() <= shares.capacity());
  shares.give_back(0, shares.held_by(0));
  CHECK(shares.may_take_more(99));
}

TEST_CASE("fair shares: an owner takes nothing from a full resource") {
  CHECK_FALSE(may_take_more({.held = 0, .taken = 4, .capacity = 4}));
  CHECK_FALSE(may_take_more({.held = 0, .taken = 5, .capacity = 4}));
  CHECK(may_take_more({.held = 0, .taken = 3, .capacity = 4}));
}
