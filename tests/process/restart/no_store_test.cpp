/// The broker is restarted with its journal but without kept descriptors: it fails closed.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/process/restart/restartable.hpp"

namespace leasehold::testing {

TEST_CASE("no store: memory of an old worker stays counted until the worker has exited") {
  Restartable fixture;
  const auto cat = fixture.system.start_streaming(kEndless, 3);
  const LeaseId lease = cat->record().leases.back();

  fixture.restart_broker([&] { fixture.store.drop_all(); });

  CHECK(fixture.system.lease(lease).state == LeaseState::Revoked);
  CHECK(fixture.system.lease(lease).reason == RevokeReason::WorkerReplaced);
  const wire::StatusView now = fixture.system.status();
  CHECK(now.free_bytes < now.capacity_bytes);
  // The worker still reads the old table, so it does not see the revocation.
  CHECK(cat->read_tokens(cat->record().tokens.size() + 3));
  fixture.system.remove_worker("w1");
  CHECK(fixture.system.eventually_fenced(lease));
  CHECK(fixture.system.lease(lease).proof == "ProcessExit");
  CHECK(fixture.system.pool_is_fully_free());
}

TEST_CASE("no store: an old worker may not resume and exits when its leases expire") {
  Restartable fixture;
  const auto ann = fixture.system.start_streaming(kAnn, 3);

  fixture.restart_broker([&] { fixture.store.drop_all(); });

  CHECK(ann->finish() == 0);  // finishes within its deadline
  CHECK(exit_status_of(fixture.system.worker()) == exit_code(Errc::BrokerLost));
  CHECK(fixture.system.pool_is_fully_free());
  fixture.system.start_ready_worker("w2");
  CHECK(fixture.system.undisturbed(kAnn).size() == kAnn.max_tokens);
}

}  // namespace leasehold::testing
