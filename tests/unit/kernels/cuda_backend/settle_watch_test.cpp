/// Waiters for settled launches are called neither too early nor twice.
#include <catch2/catch.hpp>

#include "kernels/cuda/settle_watch.hpp"

namespace leasehold::cuda {
TEST_CASE("settle watch: without launches a waiter is called at once") {
  SettleWatch watch;
  int told = 0;
  watch.when_settled([&] { ++told; });
  CHECK(told == 1);
}

TEST_CASE(
    "settle watch: a waiter is called when all earlier launches are over, whatever came later") {
  SettleWatch watch;
  int told = 0;
  watch.issued();
  watch.issued();
  watch.when_settled([&] { ++told; });
  watch.issued();
  watch.finished(1);
  CHECK(told == 0);
  watch.finished(2);
  CHECK(told == 1);
  watch.finished(3);
  CHECK(told == 1);
}

TEST_CASE("settle watch: a waiter is called when a gate of a running graph has seen its mirror") {
  SettleWatch watch;
  int told = 0;
  watch.issued();
  watch.when_settled([&] { ++told; });
  watch.seen(4);
  CHECK(told == 0);
  watch.stamp(watch.unstamped(), 5);
  watch.seen(4);
  CHECK(told == 0);
  watch.seen(5);
  CHECK(told == 1);
}

TEST_CASE("settle watch: a waiter that arrives during a poll waits for the next poll") {
  SettleWatch watch;
  int early = 0;
  int late = 0;
  watch.issued();
  watch.when_settled([&] { ++early; });
  const std::uint64_t asked = watch.unstamped();
  watch.when_settled([&] { ++late; });  // may know of a word that the current poll missed
  watch.stamp(asked, 5);
  watch.seen(5);
  CHECK(early == 1);
  CHECK(late == 0);
  REQUIRE(watch.unstamped() != 0);
  watch.stamp(watch.unstamped(), 6);
  CHECK(watch.unstamped() == 0);
  watch.seen(6);
  CHECK(late == 1);
}

TEST_CASE(
    "settle watch: a tenant's waiter waits for the last launch that touches tenants, no more") {
  SettleWatch watch;
  int tenant = 0;
  int everything = 0;
  const auto wait = [&] {
    watch.when_settled([&] { ++tenant; }, SettleScope::TenantMemory);
    watch.when_settled([&] { ++everything; }, SettleScope::Everything);
  };
  watch.issued(/*touches_tenants=*/false);
  wait();
  CHECK(tenant == 1);
  CHECK(everything == 0);
  watch.issued(/*touches_tenants=*/true);
  watch.issued(/*touches_tenants=*/false);
  wait();
  watch.finished(1);
  CHECK(tenant == 1);
  CHECK(everything == 1);
  watch.finished(2);
  CHECK(tenant == 2);
  CHECK(everything == 1);
  watch.finished(3);
  CHECK(tenant == 2);
  CHECK(everything == 2);
}

TEST_CASE("settle watch: the matmul after attention answers waiters for tenant memory only") {
  SettleWatch watch;
  int tenant = 0;
  int everything = 0;
  watch.issued();
  watch.when_settled([&] { ++tenant; }, SettleScope::TenantMemory);
  watch.when_settled([&] { ++everything; }, SettleScope::Everything);
  watch.seen(9, SettleScope::TenantMemory);  // no waiter has an epoch
  watch.stamp(watch.unstamped(), 5);
  watch.seen(4, SettleScope::TenantMemory);  // a stale report
  CHECK(tenant == 0);
  watch.seen(5, SettleScope::TenantMemory);
  CHECK(tenant == 1);
  CHECK(everything == 0);
  watch.seen(6, SettleScope::TenantMemory);
  CHECK(everything == 0);
  watch.seen(5);
  CHECK(tenant == 1);
  CHECK(everything == 1);
}

TEST_CASE("settle watch: epochs wrap") {
  constexpr std::uint32_t kLast = ~std::uint32_t{0};
  const SettleScope scope = GENERATE(SettleScope::Everything, SettleScope::TenantMemory);
  SettleWatch watch;
  int before = 0;
  int after = 0;
  watch.issued();
  watch.when_settled([&] { ++before; }, scope);
  watch.stamp(watch.unstamped(), kLast);
  watch.when_settled([&] { ++after; }, scope);
  watch.stamp(watch.unstamped(), 1);
  watch.seen(kLast - 1, scope);
  CHECK(before == 0);
  watch.seen(0, scope);
  CHECK(before == 1);
  CHECK(after == 0);
  watch.seen(2, scope);
  CHECK(after == 1);
}

TEST_CASE("settle watch: after the device is lost no waiter is called") {
  SettleWatch watch;
  int told = 0;
  watch.issued();
  watch.when_settled([&] { ++told; });
  watch.mark_lost();
  watch.finished(1);
  watch.when_settled([&] { ++told; });
  CHECK(told == 0);
}

}  // namespace leasehold::cuda
