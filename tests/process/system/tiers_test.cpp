/// A guaranteed tenant takes the memory of a scavenger, with real processes.
#include <catch2/catch.hpp>

#include "ipc/control/transport/client.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

const TenantSpec kGuaranteed{.tenant = "ann", .max_tokens = 20};

/// What a lease must ask for to hold all KV memory.
std::string all_blocks(System& system) {
  auto client = control::Client::connect(system.broker_socket()).value();
  const auto acquired = acquire(client, "sam");
  const wire::LeaseView view = system.lease(acquired.lease);
  return std::to_string(acquired.blocks * (system.status().capacity_bytes / view.size_bytes));
}

}  // namespace

TEST_CASE("tiers: a guaranteed tenant gets its text from a pool that a scavenger fills") {
  System system({.broker_arguments = {"--reclaim-grace-ms", "200"},
                 .worker_arguments = {"--slow-motion-us", "100"}});
  system.admit("ann", {"--tier", "guaranteed", "--reserved-blocks", "8"});
  system.admit("sam", {"--tier", "scavenger", "--max-blocks", "100000"});
  const auto ann_alone = system.undisturbed(kGuaranteed);
  const TenantSpec scavenger{
      .tenant = "sam", .max_tokens = 300, .rebind = true, .more = {"--blocks", all_blocks(system)}};
  REQUIRE(system.pool_is_fully_free());
  const auto sam_alone = system.undisturbed(scavenger);
  REQUIRE(system.pool_is_fully_free());
  const auto sam = system.start_streaming(scavenger, 4);
  REQUIRE(system.status().free_bytes == 0);

  const auto ann = system.start_tenant(kGuaranteed);

  check_whole(*ann, ann_alone);
  REQUIRE(sam->read_until([](const auto& record) { return !record.revocations.empty(); }));
  const runner::Revocation revocation = sam->record().revocations.front();
  CHECK(revocation.reason == "preempted_by_priority");
  CHECK(revocation.after_tokens >= 4);
  CHECK(revocation.after_tokens < 300);
  check_whole(*sam, sam_alone);
  CHECK(sam->record().leases.size() == 2);
  CHECK(system.pool_is_fully_free());
}

}  // namespace leasehold::testing
