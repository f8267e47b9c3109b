// What a lease asks the broker for, and how long a refusal counts.
#include "worker/schedule/tenants/lease_growth.hpp"

#include <catch2/catch.hpp>

namespace leasehold::testing {

TEST_CASE(
    "lease growth: blocks for a waiting request are asked for when no running one wants any") {
  LeaseGrowth growth;
  growth.want_for_waiting(9);
  growth.want(2);
  growth.want(1);
  CHECK(growth.take_wanted() == 2);
  CHECK(growth.take_wanted() == 0);
  growth.want_for_waiting(9);
  CHECK(growth.take_wanted() == 9);
}

TEST_CASE("lease growth: a refusal counts once, and only for at least as many blocks") {
  LeaseGrowth growth;
  growth.deny(3, Errc::QuotaBlocks);
  CHECK(growth.is_at_quota());
  CHECK(growth.is_denied(3));
  CHECK_FALSE(growth.is_denied(2));
  growth.want(3);
  CHECK(growth.take_denial());
  CHECK_FALSE(growth.take_denial());
  growth.deny(4, Errc::PoolExhausted);
  CHECK_FALSE(growth.is_at_quota());
  CHECK_FALSE(growth.take_denial());
  CHECK_FALSE(growth.is_denied(4));
}

TEST_CASE("lease growth: a refusal counts again in the plan after a victim awaited swap") {
  LeaseGrowth growth;
  growth.renew_denial();
  CHECK_FALSE(growth.is_denied(0));
  growth.await_swap(true);
  growth.renew_denial();
  CHECK(growth.take_denial());
  growth.renew_denial();
  CHECK_FALSE(growth.take_denial());
}

TEST_CASE("lease growth: a refusal of swap counts until swap is granted") {
  LeaseGrowth growth;
  growth.want_swap(2);
  growth.want_swap(1);
  CHECK(growth.take_swap_wanted() == 2);
  CHECK(growth.take_swap_wanted() == 0);
  growth.deny_swap();
  CHECK(growth.is_swap_denied());
  growth.grant_swap();
  CHECK_FALSE(growth.is_swap_denied());
}

}  // namespace leasehold::testing
