/// The broker is killed and restarted with its kept descriptors: no stream loses a token, and
/// leases can still be revoked.
#include <signal.h>

#include <catch2/catch.hpp>

#include "common/random.hpp"
#include "ipc/control/transport/client.hpp"
#include "tests/process/restart/restartable.hpp"
#include "tests/support/test_seed.hpp"

namespace leasehold::testing {
namespace {

struct Streams {
  std::unique_ptr<Tenant> ann, bob, cat;

  explicit Streams(System& system)
      : ann(system.start_tenant(kAnn)),
        bob(system.start_tenant(kBob)),
        cat(system.start_tenant(kCat)) {}
};

/// The three texts without any restart.
struct Texts {
  std::vector<std::int32_t> ann, bob, cat;

  static const Texts& undisturbed() {
    static const Texts texts = [] {
      System calm({.worker_arguments = {}});
      for (const char* tenant : {"ann", "bob", "cat"}) calm.admit(tenant);
      return Texts{calm.undisturbed(kAnn), calm.undisturbed(kBob), calm.undisturbed(kCat)};
    }();
    return texts;
  }
};

void check_no_token_lost(Streams& streams) {
  CHECK(streams.ann->finish() == 0);
  CHECK(streams.bob->finish() == 0);
  CHECK(streams.cat->finish() == 0);
  CHECK((streams.ann->record().tokens == Texts::undisturbed().ann));
  CHECK((streams.bob->record().tokens == Texts::undisturbed().bob));
  CHECK((streams.cat->record().tokens == Texts::undisturbed().cat));
}

}  // namespace

TEST_CASE("restart: no stream loses a token when the broker is killed while decoding") {
  SeededRandom random(test_seed(20261120));
  CAPTURE(test_seed(20261120));
  Restartable fixture;
  const pid_t worker = fixture.system.worker().pid();
  for (int round = 0; round < 3; ++round) {
    Streams streams(fixture.system);
    REQUIRE(streams.ann->read_tokens(1));
    REQUIRE(streams.bob->read_tokens(1));
    REQUIRE(streams.cat->read_tokens(1 + random.below(60)));

    fixture.restart_broker();

    check_no_token_lost(streams);
    CHECK(streams.cat->record().leases.size() == 1);
  }
  CHECK(fixture.system.pool_is_fully_free());
  CHECK(eventually([&] { return fixture.system.worker_is_ready(); }));
  CHECK(fixture.system.worker().pid() == worker);
  CHECK_FALSE(fixture.system.worker().status());
}

TEST_CASE("restart: a stream survives five restarts of the broker") {
  Restartable fixture;
  const auto cat = fixture.system.start_tenant(kCat);
  for (std::size_t death = 1; death <= 5; ++death) {
    REQUIRE(cat->read_tokens(10 * death));
    fixture.restart_broker();
  }
  CHECK(cat->finish() == 0);
  CHECK((cat->record().tokens == Texts::undisturbed().cat));
  CHECK(fixture.system.pool_is_fully_free());
}

TEST_CASE("restart: a revocation after a restart stops the stream and scrubs the memory") {
  Restartable fixture;
  const auto cat = fixture.system.start_tenant(kEndless);
  const auto bob = fixture.system.start_tenant(kBob);
  REQUIRE(cat->read_tokens(5));
  REQUIRE(bob->read_tokens(1));
  fixture.restart_broker();
  REQUIRE(eventually([&] { return fixture.system.worker_is_ready(); }));
  const LeaseId lease = cat->record().leases.back();
  const auto kept = runner::open_extents(fixture.system.view(), lease);
  REQUIRE(kept);
  REQUIRE_FALSE(kept->empty());
  REQUIRE(runner::sum({kept->front().before}).nonzero_bytes > 0);

  REQUIRE(fixture.system.brokerctl({"revoke", to_string(lease)}) == 0);

  CHECK(cat->finish() == exit_code(Errc::LeaseRevoked));
  REQUIRE(fixture.system.eventually_fenced(lease));
  CHECK(fixture.system.lease(lease).proof == "LaunchQuiet");
  CHECK(eventually([&] { return all_zero_and_free(*kept); }));
  CHECK(bob->finish() == 0);
  CHECK((bob->record().tokens == Texts::undisturbed().bob));
  CHECK(fixture.system.pool_is_fully_free());
}

TEST_CASE("restart: no stream loses a token when the broker is killed at any fault point") {
  // The first grants are weights, ann and bob, so numbers 3 and 4 hit a tenant's grant. The stream
  // of ann ends first, so number 1 hits her release while the others decode.
  for (const char* fault : {"broker.grant.decided:kill:3", "broker.grant.published:kill:4",
                            "broker.journal.written:kill:9", "broker.revoke.published:kill:1",
                            "broker.fence.decided:kill:1", "broker.scrubbed:kill:1"}) {
    CAPTURE(fault);
    Restartable fixture(fault);
    Streams streams(fixture.system);

    fixture.restart_when_dead();

    check_no_token_lost(streams);
    CHECK(fixture.system.pool_is_fully_free());
  }
}

TEST_CASE("restart: a lease that expires while no broker runs is fenced") {
  Restartable fixture;
  fixture.system.admit("cat", {"--ttl-ms", "6000"});
  const auto cat = fixture.system.start_streaming(kEndless, 3);
  const LeaseId lease = cat->record().leases.back();

  int ended = -1;
  fixture.restart_broker([&] { ended = cat->finish(); });

  // Either the stream finished before the lease expired, or it ends with BrokerLost.
  INFO("exit code " << ended);
  CHECK((ended == exit_code(Errc::BrokerLost) || ended == 0));
  REQUIRE(fixture.system.eventually_fenced(lease));
  CHECK(fixture.system.pool_is_fully_free());
  CHECK(eventually([&] { return fixture.system.worker_is_ready(); }));
  CHECK(fixture.system.undisturbed(kAnn) == Texts::undisturbed().ann);
}

TEST_CASE("restart: a drained lease ends although its worker's report was lost with the broker") {
  Restartable fixture;
  fixture.system.admit("ann", {"--ttl-ms", "600000"});
  auto client = control::Client::connect(fixture.system.broker_socket()).value();
  const LeaseId lease = acquire(client, "ann").lease;

  fixture.system.while_worker_stopped([&] {
    REQUIRE(fixture.system.brokerctl({"drain", to_string(lease), "--grace-ms", "3600000"}) == 0);
    fixture.restart_broker();
  });

  REQUIRE(fixture.system.eventually_fenced(lease));
  CHECK(fixture.system.lease(lease).reason == RevokeReason::Released);
}

TEST_CASE("restart: a worker that reconnects is drained once it is back") {
  Restartable fixture;
  fixture.system.while_worker_stopped([&] {
    fixture.restart_broker();
    CHECK(fixture.system.brokerctl({"drain", "--worker", "w1"}) == exit_code(Errc::BrokerLost));
  });
  REQUIRE(eventually([&] { return fixture.system.worker_is_ready(); }));
  CHECK(fixture.system.brokerctl({"drain", "--worker", "w1", "--wait"}) == 0);
}

TEST_CASE("restart: a tenant that exits while no broker runs loses its lease") {
  Restartable fixture;
  auto cat = fixture.system.start_tenant(kCat);
  const auto bob = fixture.system.start_tenant(kBob);
  REQUIRE(cat->read_tokens(3));
  REQUIRE(bob->read_tokens(1));
  const LeaseId lease = cat->record().leases.back();

  fixture.restart_broker([&] { cat.reset(); });

  CHECK(fixture.system.eventually_fenced(lease));
  CHECK(fixture.system.lease(lease).reason == RevokeReason::HolderGone);
  CHECK(bob->finish() == 0);
  CHECK(fixture.system.pool_is_fully_free());
}

TEST_CASE("restart: a tenant that exits before it calls lease.hold again loses its lease") {
  Restartable fixture;
  auto cat = fixture.system.start_streaming(kCat, 3);
  const LeaseId lease = cat->record().leases.back();
  REQUIRE(cat->child().signal(SIGSTOP));
  REQUIRE(eventually([&] { return is_stopped(cat->child().pid()); }));
  fixture.restart_broker();
  REQUIRE(fixture.system.lease(lease).state == LeaseState::Live);

  cat.reset();

  CHECK(fixture.system.eventually_fenced(lease));
  CHECK(fixture.system.lease(lease).reason == RevokeReason::HolderGone);
  CHECK(fixture.system.pool_is_fully_free());
}

TEST_CASE("restart: the exit of a worker while no broker runs fences its leases") {
  Restartable fixture;
  const auto cat = fixture.system.start_streaming(kCat, 3);
  const LeaseId lease = cat->record().leases.back();

  fixture.restart_broker([&] { fixture.system.remove_worker("w1"); });

  CHECK(fixture.system.eventually_fenced(lease));
  CHECK(fixture.system.lease(lease).proof == "ProcessExit");
  CHECK(cat->finish() != 0);
  CHECK(fixture.system.pool_is_fully_free());
}

TEST_CASE("restart: a worker that does not resume within the grace is killed and fenced") {
  Restartable fixture({}, {"--reattach-grace-ms", "500", "--fence-timeout-ms", "500"});
  const auto cat = fixture.system.start_streaming(kCat, 3);
  const LeaseId lease = cat->record().leases.back();
  const pid_t worker = fixture.system.worker().pid();
  REQUIRE(fixture.system.worker().signal(SIGSTOP));
  REQUIRE(eventually([&] { return is_stopped(worker); }));

  fixture.restart_broker();

  CHECK(exit_status_of(fixture.system.worker()) == 128 + SIGKILL);
  CHECK(fixture.system.eventually_fenced(lease));
  CHECK(fixture.system.lease(lease).reason == RevokeReason::WorkerGone);
  CHECK(cat->finish() != 0);
  CHECK(fixture.system.pool_is_fully_free());
}

TEST_CASE("restart: a worker killed while it resumes loses its own leases and no others") {
  for (const char* fault : {"worker.resumed:kill", "worker.redelivered:kill"}) {
    CAPTURE(fault);
    Restartable fixture;
    fixture.system.remove_worker("w1");
    fixture.system.start_ready_worker("w2", fault);
    const auto cat = fixture.system.start_streaming(kEndless, 3);
    const LeaseId lease = cat->record().leases.back();

    fixture.restart_broker();

    CHECK(cat->finish() != 0);
    CHECK(fixture.system.eventually_fenced(lease));
    CHECK(fixture.system.pool_is_fully_free());
    fixture.system.start_ready_worker("w3");
    CHECK(fixture.system.undisturbed(kAnn) == Texts::undisturbed().ann);
  }
}

}  // namespace leasehold::testing
