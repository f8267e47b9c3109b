/// Death or stop of one of the processes.
#include <signal.h>

#include <catch2/catch.hpp>

#include "common/machine/process.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

const TenantSpec kAnn{.tenant = "ann", .prompt = "Once upon a time"};
const TenantSpec kBob{.tenant = "bob", .prompt = "The little fox"};
const TenantSpec kCat{.tenant = "cat", .prompt = "One morning", .max_tokens = 480};

const std::vector<std::string> kAll{"ann", "bob", "cat"};

}  // namespace

TEST_CASE("a tenant killed mid-decode is revoked, fenced and freed; survivors unchanged") {
  System system({.tenants = kAll});
  const auto ann_alone = system.undisturbed(kAnn);
  const auto bob_alone = system.undisturbed(kBob);
  const auto cat = system.start_tenant(kCat);
  const auto ann = system.start_tenant(kAnn);
  const auto bob = system.start_tenant(kBob);
  REQUIRE(cat->read_tokens(20));
  const LeaseId lease = cat->record().leases.back();
  const auto kept = runner::open_extents(system.view(), lease);
  REQUIRE(kept);
  REQUIRE_FALSE(kept->empty());
  REQUIRE(runner::sum({kept->front().before}).nonzero_bytes > 0);

  REQUIRE(cat->child().signal(SIGKILL));

  REQUIRE(system.eventually_fenced(lease));
  CHECK(system.lease(lease).reason == RevokeReason::HolderGone);
  CHECK(system.lease(lease).proof == "LaunchQuiet");
  CHECK(eventually([&] { return all_zero_and_free(*kept); }));
  check_whole(*ann, ann_alone);
  check_whole(*bob, bob_alone);
  CHECK(system.pool_is_fully_free());
}

TEST_CASE("a worker killed mid-decode leaves no lease live and no byte lost") {
  System system({.tenants = kAll});
  const auto ann_alone = system.undisturbed(kAnn);
  const auto cat = system.start_tenant(kCat);
  const auto bob = system.start_tenant(kBob);
  REQUIRE(cat->read_tokens(20));
  REQUIRE(bob->read_tokens(5));
  const LeaseId lease = cat->record().leases.back();
  const auto kept = runner::open_extents(system.view(), lease);
  REQUIRE(kept);

  REQUIRE(system.worker().signal(SIGKILL));

  REQUIRE(system.eventually_fenced(lease));
  // The holder releases the lease when the worker's socket closes, which may be before the broker
  // revokes it.
  const RevokeReason reason = system.lease(lease).reason;
  CHECK((reason == RevokeReason::WorkerGone || reason == RevokeReason::Released));
  CHECK(eventually([&] { return system.status().leases_live == 0; }));
  CHECK(eventually([&] { return all_zero_and_free(*kept); }));
  CHECK(cat->finish() != 0);
  CHECK(bob->finish() != 0);
  CHECK(system.pool_is_fully_free());

  system.start_ready_worker("w2");
  CHECK(system.undisturbed(kAnn) == ann_alone);
}

TEST_CASE("a worker killed for ever: a tenant with --rebind continues on another worker") {
  System system({.tenants = kAll});
  TenantSpec spec = kCat;
  spec.max_tokens = 240;
  const auto alone = system.undisturbed(spec);
  spec.rebind = true;
  const auto held = system.start_streaming(spec, 20);
  system.start_ready_worker("w2");

  REQUIRE(system.worker("w1").signal(SIGKILL));

  check_whole(*held, alone);
  REQUIRE(held->record().leases.size() == 2);
  CHECK(system.lease(held->record().leases[0]).worker == "w1");
  CHECK(system.lease(held->record().leases[0]).reason == RevokeReason::WorkerGone);
  CHECK(system.lease(held->record().leases[1]).worker == "w2");
  CHECK(system.pool_is_fully_free());
}

TEST_CASE("a tenant with --rebind that names its worker gets it again after a revocation") {
  System system({.tenants = kAll});
  TenantSpec spec = kCat;
  spec.max_tokens = 240;
  const auto alone = system.undisturbed(spec);
  system.start_ready_worker("w2");
  spec.rebind = true;
  spec.more = {"--worker", "w1"};
  const auto held = system.start_streaming(spec, 20);

  system.revoke_mid_request("cat");

  check_whole(*held, alone);
  REQUIRE(held->record().leases.size() == 2);
  CHECK(system.lease(held->record().leases[1]).worker == "w1");
}

TEST_CASE("a worker stopped between poll and launch, continued after the fence, starts nothing") {
  // The stop falls on consecutive units, so that some can reach tenant memory and some cannot.
  bool fenced_while_stopped = false;
  bool waited_for_the_unit = false;
  const auto alone = System::alone(kCat);
  for (int unit = 3000; unit < 3400; unit += 13) {
    if (fenced_while_stopped && waited_for_the_unit) break;
    CAPTURE(unit);
    System system({.worker_arguments = {"--threads", "1"},
                   .worker_fault = "worker.unit.polled:stop:" + std::to_string(unit),
                   .tenants = kAll});
    const auto cat = system.start_tenant(kCat);
    const pid_t worker = system.worker().pid();
    REQUIRE(eventually([&] { return is_stopped(worker); }));
    REQUIRE(cat->read_until([](const auto& record) { return !record.leases.empty(); }));
    const LeaseId lease = cat->record().leases.back();
    const auto kept = runner::open_extents(system.view(), lease);
    REQUIRE(kept);
    REQUIRE(is_stopped(worker));

    REQUIRE(system.brokerctl({"revoke", to_string(lease)}) == 0);

    // The announcements prove that the lease is quiet. A unit that could touch the lease cannot end
    // while the worker is stopped, so the state cannot change until it resumes.
    const auto first_look = system.lease(lease).state;
    const bool fenced =
        first_look == LeaseState::Fenced ||
        (first_look == LeaseState::Revoked && system.lease(lease).state == LeaseState::Fenced);
    (fenced ? fenced_while_stopped : waited_for_the_unit) = true;
    if (fenced) CHECK(eventually([&] { return all_zero_and_free(*kept); }));
    REQUIRE(system.worker().signal(SIGCONT));

    REQUIRE(system.eventually_fenced(lease));
    CHECK(system.lease(lease).proof == "LaunchQuiet");
    CHECK(cat->finish() == exit_code(Errc::LeaseRevoked));
    CHECK(is_prefix(cat->record().tokens, alone));
    CHECK(system.pool_is_fully_free());
    CHECK(all_zero_and_free(*kept));
  }
  CHECK(fenced_while_stopped);
  CHECK(waited_for_the_unit);
}

TEST_CASE("a worker that stays stopped is killed, and everything it held is fenced") {
  System system({.broker_arguments = {"--fence-timeout-ms", "300"}, .tenants = kAll});
  const auto cat = system.start_streaming(kCat, 10);
  const LeaseId lease = cat->record().leases.back();
  REQUIRE(system.worker().signal(SIGSTOP));
  const pid_t worker = system.worker().pid();
  REQUIRE(eventually([&] { return is_stopped(worker); }));

  REQUIRE(system.brokerctl({"revoke", to_string(lease)}) == 0);

  // A stopped worker never unmaps the fenced memory.
  CHECK(exit_status_of(system.worker()) == 128 + SIGKILL);
  CHECK(eventually([&] { return system.status().leases_live == 0; }));
  CHECK(system.eventually_fenced(lease));
  CHECK(system.pool_is_fully_free());
}

TEST_CASE("without a broker a lease ends at its deadline") {
  const auto alone = System::alone(kCat);
  System slow({.worker_arguments = {"--slow-motion-us", "300", "--broker-timeout-ms", "200"}});
  slow.admit("cat", {"--ttl-ms", "5000"});
  const auto cat = slow.start_streaming(kCat, 3);

  REQUIRE(slow.broker().signal(SIGKILL));

  CHECK(cat->finish() != 0);
  CHECK(cat->record().tokens.size() < alone.size());
  CHECK(is_prefix(cat->record().tokens, alone));
  // The worker exits after its last lease ended, and logs the reason.
  CHECK(exit_status_of(slow.worker()) == exit_code(Errc::BrokerLost));
}

TEST_CASE("a broker that stops on SIGTERM revokes all leases and every tenant is notified") {
  System system({.tenants = kAll});
  const auto cat = system.start_tenant(kCat);
  const auto bob = system.start_tenant(kBob);
  REQUIRE(cat->read_tokens(10));
  REQUIRE(bob->read_tokens(3));

  REQUIRE(system.broker().signal(SIGTERM));

  CHECK(cat->finish() == exit_code(Errc::LeaseRevoked));
  CHECK(bob->finish() == exit_code(Errc::LeaseRevoked));
  CHECK(exit_status_of(system.broker()) == 0);
}

TEST_CASE("a kill at any named point of a worker leaks nothing") {
  for (const char* fault :
       {"worker.attached:kill", "worker.weights.filled:kill", "worker.extents.mapped:kill",
        "worker.unit.polled:kill:4000", "worker.commit.before_record:kill:7",
        "worker.commit.after_record:kill:7", "worker.extents.unmapped:kill"}) {
    CAPTURE(fault);
    System system({.worker_arguments = {}, .start_worker = false, .tenants = kAll});
    system.start_worker("w1", fault);
    std::unique_ptr<Tenant> cat;
    const bool ready =
        eventually([&] { return system.worker_is_ready() || has_exited(system.worker().pidfd()); });
    REQUIRE(ready);
    if (!has_exited(system.worker().pidfd())) cat = system.start_tenant(kCat);
    if (cat) cat->finish();
    REQUIRE(eventually([&] { return has_exited(system.worker().pidfd()); }));

    CHECK(eventually([&] { return system.status().leases_live == 0; }));
    CHECK(system.pool_is_fully_free());
    system.start_ready_worker("w2");
    CHECK(system.undisturbed(kAnn).size() == kAnn.max_tokens);
  }
}

}  // namespace leasehold::testing
