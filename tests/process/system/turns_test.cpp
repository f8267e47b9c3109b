/// Texts that lost their leases wait in turn for memory, with real processes.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "common/random.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

Result<wire::LeaseAcquired> acquire_lease(control::Client& broker, const std::string& tenant) {
  const wire::LeaseAcquire ask{.tenant = {tenant}, .request_id = {mint_request_id()}};
  const auto reply = TRY(broker.call("lease.acquire", {.body = ask.to_json()}));
  return wire::LeaseAcquired::from_json(reply.body);
}

void release(control::Client& broker, LeaseId lease) {
  const wire::LeaseRelease ask{.lease = lease, .request_id = {mint_request_id()}};
  REQUIRE(broker.call("lease.release", {.body = ask.to_json()}));
}

auto waits_behind(std::size_t others) {
  return [others](const runner::TenantRecord& record) {
    return std::ranges::any_of(record.reported, [others](const runner::TenantEvent& event) {
      return event.event == "retry" &&
             event.detail.contains(std::to_string(others) + " rebinds wait before this one");
    });
  };
}

bool has_rebound(const runner::TenantRecord& record) {
  return std::ranges::any_of(
      record.reported, [](const runner::TenantEvent& event) { return event.event == "rebound"; });
}

}  // namespace

TEST_CASE("turns: texts that lost their leases to a full pool wait, the oldest first, and go on") {
  System system({.capacity = "4MiB",  // two extents
                 .worker_arguments = {"--slow-motion-us", "100"}});
  for (const char* tenant : {"ann", "bob", "full"}) system.admit(tenant, {"--ttl-ms", "600000"});
  const TenantSpec of_ann{.tenant = "ann", .max_tokens = 60, .rebind = true};
  const TenantSpec of_bob{.tenant = "bob", .max_tokens = 60, .rebind = true};
  const auto alone = system.undisturbed(of_ann);
  const auto ann = system.start_streaming(of_ann, 4);
  const auto bob = system.start_streaming(of_bob, 4);
  // Both texts are stopped, so that another tenant takes the memory before they ask again.
  for (Tenant* tenant : {ann.get(), bob.get()}) REQUIRE(tenant->child().signal(SIGSTOP));
  for (const char* tenant : {"ann", "bob"})
    REQUIRE(system.brokerctl({"revoke", "--tenant", tenant, "--wait"}) == 0);
  REQUIRE(system.pool_is_fully_free());
  control::Client full = control::Client::connect(system.broker_socket()).value();
  const LeaseId one = acquire_lease(full, "full").value().lease;
  const LeaseId other = acquire_lease(full, "full").value().lease;

  REQUIRE(ann->child().signal(SIGCONT));
  REQUIRE(ann->read_until(waits_behind(0)));
  REQUIRE(bob->child().signal(SIGCONT));
  REQUIRE(bob->read_until(waits_behind(1)));
  // The first in turn does not ask while memory becomes free, and keeps its place (for 5 s).
  REQUIRE(ann->child().signal(SIGSTOP));
  release(full, one);
  REQUIRE(eventually([&] { return system.status().free_bytes > 0; }));
  const auto out_of_turn = acquire_lease(full, "full");
  REQUIRE_FALSE(out_of_turn);
  CHECK(out_of_turn.error().code == Errc::PoolExhausted);
  REQUIRE(ann->child().signal(SIGCONT));
  REQUIRE(ann->read_until(has_rebound));
  CHECK_FALSE(has_rebound(bob->record()));
  release(full, other);

  check_whole(*ann, alone);
  check_whole(*bob, alone);
}

TEST_CASE("turns: a text waits no longer than --rebind-timeout-ms") {
  System system({.capacity = "2MiB", .worker_arguments = {"--slow-motion-us", "100"}});
  for (const char* tenant : {"ann", "full"}) system.admit(tenant, {"--ttl-ms", "600000"});
  const auto ann = system.start_streaming(
      {.tenant = "ann", .max_tokens = 60, .rebind = true, .more = {"--rebind-timeout-ms", "200"}},
      4);
  REQUIRE(ann->child().signal(SIGSTOP));
  REQUIRE(system.brokerctl({"revoke", "--tenant", "ann", "--wait"}) == 0);
  REQUIRE(system.pool_is_fully_free());
  control::Client full = control::Client::connect(system.broker_socket()).value();
  REQUIRE(acquire_lease(full, "full"));
  REQUIRE(ann->child().signal(SIGCONT));
  CHECK(ann->finish() == exit_code(Errc::PoolExhausted));
  CHECK(ann->record().failed.value_or("").contains("given up after"));
}

}  // namespace leasehold::testing
