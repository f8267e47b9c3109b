/// An upgrade of the package restarts broker and workers while streams run: tools/package/postinst.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/process/restart/restartable.hpp"

namespace leasehold::testing {
namespace {

/// As systemd does for units where the worker starts after the broker: the workers stop first.
void restart_all(System& system) {
  REQUIRE(system.worker().signal(SIGTERM));
  CHECK(exit_status_of(system.worker()) == 0);
  REQUIRE(system.broker().signal(SIGTERM));
  CHECK(exit_status_of(system.broker()) == 0);
  REQUIRE(system.start_broker());
  system.start_ready_worker("w1");
}

std::vector<std::int32_t> alone(const TenantSpec& spec) {
  return System::alone(
      {.tenant = spec.tenant, .prompt = spec.prompt, .max_tokens = spec.max_tokens});
}

}  // namespace

TEST_CASE("upgrade: streams that rebind get every position once, and the others a typed end") {
  Restartable fixture;
  System& system = fixture.system;
  system.remove_worker("w1");
  system.start_ready_worker("w1", {}, {"--drain-timeout-ms", "100"});
  TenantSpec rebinding = kEndless;
  rebinding.rebind = true;
  TenantSpec resumable = kBob;
  resumable.max_tokens = 480;
  resumable.rebind = true;
  resumable.more = {"--resumable", "--request-id", "story"};
  TenantSpec plain = kAnn;
  plain.max_tokens = 480;
  const auto cat = system.start_streaming(rebinding, 10);
  const auto bob = system.start_streaming(resumable, 10);
  const auto ann = system.start_streaming(plain, 10);

  restart_all(system);

  CHECK(ann->finish() == exit_code(Errc::Draining));
  CHECK(is_prefix(ann->record().tokens, alone(plain)));
  check_whole(*cat, alone(rebinding));
  CHECK(cat->record().leases.size() > 1);
  check_whole(*bob, alone(resumable));
  CHECK(system.pool_is_fully_free());
}

}  // namespace leasehold::testing
