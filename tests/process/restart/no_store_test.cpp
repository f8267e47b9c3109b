/// The broker is started again with its journal, but nothing was kept: fail-closed.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/process/restart/restartable.hpp"

namespace leasehold::testing {

TEST_CASE("no store: an old worker's memory stays counted until it is proven dead") {
  Restartable world;
  world.system.admit("cat", {"--ttl-ms", "20000"});
  const auto cat = world.system.start_tenant(kEndless);
  REQUIRE(cat->read_tokens(3));
  const LeaseId lease = cat->record().leases.back();

  world.restart_broker([&] { world.store.drop_all(); });

  CHECK(world.system.lease(lease).state == LeaseState::Revoked);
  CHECK(world.system.lease(lease).reason == RevokeReason::WorkerReplaced);
  const wire::StatusView now = world.system.status();
  CHECK(now.free_bytes < now.capacity_bytes);
  // Nobody could tell it: it runs on under the words of the old table.
  CHECK(cat->read_tokens(cat->record().tokens.size() + 3));
  world.system.remove_worker("w1");
  CHECK(world.system.eventually_fenced(lease));
  CHECK(world.system.lease(lease).proof == "ProcessExit");
  CHECK(world.system.pool_is_fully_free());
}

TEST_CASE("no store: an old worker is refused and ends when its leases are over") {
  Restartable world;
  const auto ann = world.system.start_tenant(kAnn);
  REQUIRE(ann->read_tokens(3));

  world.restart_broker([&] { world.store.drop_all(); });

  CHECK(ann->finish() == 0);  // under the deadline it holds
  std::optional<int> status;
  CHECK(eventually([&] { return (status = world.system.worker().status()).has_value(); }));
  CHECK(status == exit_code(Errc::BrokerLost));
  CHECK(world.system.pool_is_fully_free());
  world.system.start_worker("w2");
  REQUIRE(eventually([&] { return world.system.worker_is_ready("w2"); }));
  CHECK(world.system.undisturbed(kAnn).size() == kAnn.max_tokens);
}

}  // namespace leasehold::testing
