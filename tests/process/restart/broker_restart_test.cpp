/// The broker dies by SIGKILL and is started again with what its service manager kept: nobody loses
/// a token, and leases are as revocable as before.
#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "common/random.hpp"
#include "tests/process/restart/restartable.hpp"

namespace leasehold::testing {
namespace {

struct Streams {
  std::unique_ptr<Tenant> ann, bob, cat;

  explicit Streams(System& system)
      : ann(system.start_tenant(kAnn)),
        bob(system.start_tenant(kBob)),
        cat(system.start_tenant(kCat)) {}
};

/// What the three say when nobody disturbs them.
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

std::uint64_t seed() {
  const char* given = std::getenv("SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20261120;
}

}  // namespace

TEST_CASE("restart: a broker killed at any moment of decoding costs nobody a token") {
  SeededRandom random(seed());
  CAPTURE(seed());
  Restartable world;
  const pid_t worker = world.system.worker().pid();
  for (int round = 0; round < 3; ++round) {
    Streams streams(world.system);
    REQUIRE(streams.ann->read_tokens(1));
    REQUIRE(streams.bob->read_tokens(1));
    REQUIRE(streams.cat->read_tokens(1 + random.below(60)));

    world.restart_broker();

    check_no_token_lost(streams);
    CHECK(streams.cat->record().leases.size() == 1);
  }
  CHECK(world.system.pool_is_fully_free());
  CHECK(eventually([&] { return world.system.worker_is_ready(); }));
  CHECK(world.system.worker().pid() == worker);
  CHECK_FALSE(world.system.worker().status());
}

TEST_CASE("restart: one that dies again and again while a tenant decodes is no different") {
  Restartable world;
  const auto cat = world.system.start_tenant(kCat);
  for (std::size_t death = 1; death <= 5; ++death) {
    REQUIRE(cat->read_tokens(10 * death));
    world.restart_broker();
  }
  CHECK(cat->finish() == 0);
  CHECK((cat->record().tokens == Texts::undisturbed().cat));
  CHECK(world.system.pool_is_fully_free());
}

TEST_CASE("restart: a revocation after it stops the stream, is proven, and scrubs the memory") {
  Restartable world;
  const auto cat = world.system.start_tenant(kEndless);
  const auto bob = world.system.start_tenant(kBob);
  REQUIRE(cat->read_tokens(5));
  REQUIRE(bob->read_tokens(1));
  world.restart_broker();
  REQUIRE(eventually([&] { return world.system.worker_is_ready(); }));
  const LeaseId lease = cat->record().leases.back();
  const auto kept = demo::open_extents(world.system.view(), lease);
  REQUIRE(kept);
  REQUIRE_FALSE(kept->empty());
  REQUIRE(demo::sum({kept->front().before}).nonzero_bytes > 0);

  REQUIRE(world.system.brokerctl({"revoke", to_string(lease)}) == 0);

  CHECK(cat->finish() == exit_code(Errc::LeaseRevoked));
  REQUIRE(world.system.eventually_fenced(lease));
  CHECK(world.system.lease(lease).proof == "LaunchQuiet");
  CHECK(eventually([&] { return all_zero_and_free(*kept); }));
  CHECK(bob->finish() == 0);
  CHECK((bob->record().tokens == Texts::undisturbed().bob));
  CHECK(world.system.pool_is_fully_free());
}

TEST_CASE("restart: a kill at any named point of the broker costs nobody a token") {
  // Three grants come first (weights, ann, bob), so 3 and 4 hit a tenant's; ann ends first, so 1
  // hits what follows her release while the others decode.
  for (const char* fault : {"broker.grant.decided:kill:3", "broker.grant.published:kill:4",
                            "broker.journal.written:kill:9", "broker.revoke.published:kill:1",
                            "broker.fence.decided:kill:1", "broker.scrubbed:kill:1"}) {
    CAPTURE(fault);
    Restartable world(fault);
    Streams streams(world.system);

    world.restart_when_dead();

    check_no_token_lost(streams);
    CHECK(world.system.pool_is_fully_free());
  }
}

TEST_CASE("restart: a lease whose time ran out while no broker was there is over") {
  Restartable world;
  world.system.admit("cat", {"--ttl-ms", "6000"});
  const auto cat = world.system.start_tenant(kEndless);
  REQUIRE(cat->read_tokens(3));
  const LeaseId lease = cat->record().leases.back();

  int ended = -1;
  world.restart_broker([&] { ended = cat->finish(); });

  // Either its tokens were all out before the lease ran out, or it says whose fault it was.
  INFO("exit code " << ended);
  CHECK((ended == exit_code(Errc::BrokerLost) || ended == 0));
  REQUIRE(world.system.eventually_fenced(lease));
  CHECK(world.system.pool_is_fully_free());
  CHECK(eventually([&] { return world.system.worker_is_ready(); }));
  CHECK(world.system.undisturbed(kAnn) == Texts::undisturbed().ann);
}

TEST_CASE("restart: a tenant that died while no broker was there holds nothing") {
  Restartable world;
  auto cat = world.system.start_tenant(kCat);
  const auto bob = world.system.start_tenant(kBob);
  REQUIRE(cat->read_tokens(3));
  REQUIRE(bob->read_tokens(1));
  const LeaseId lease = cat->record().leases.back();

  world.restart_broker([&] { cat.reset(); });

  CHECK(world.system.eventually_fenced(lease));
  CHECK(world.system.lease(lease).reason == RevokeReason::HolderGone);
  CHECK(bob->finish() == 0);
  CHECK(world.system.pool_is_fully_free());
}

TEST_CASE("restart: a tenant that dies before it has claimed its lease again is noticed") {
  Restartable world;
  auto cat = world.system.start_tenant(kCat);
  REQUIRE(cat->read_tokens(3));
  const LeaseId lease = cat->record().leases.back();
  REQUIRE(cat->child().signal(SIGSTOP));
  REQUIRE(eventually([&] { return is_stopped(cat->child().pid()); }));
  world.restart_broker();
  REQUIRE(world.system.lease(lease).state == LeaseState::Live);

  cat.reset();

  CHECK(world.system.eventually_fenced(lease));
  CHECK(world.system.lease(lease).reason == RevokeReason::HolderGone);
  CHECK(world.system.pool_is_fully_free());
}

TEST_CASE("restart: a worker that died while no broker was there is fenced by its exit") {
  Restartable world;
  const auto cat = world.system.start_tenant(kCat);
  REQUIRE(cat->read_tokens(3));
  const LeaseId lease = cat->record().leases.back();

  world.restart_broker([&] { world.system.remove_worker("w1"); });

  CHECK(world.system.eventually_fenced(lease));
  CHECK(world.system.lease(lease).proof == "ProcessExit");
  CHECK(cat->finish() != 0);
  CHECK(world.system.pool_is_fully_free());
}

TEST_CASE("restart: a worker that does not come back in its grace is killed, and fenced by that") {
  Restartable world({}, {"--reattach-grace-ms", "500", "--fence-timeout-ms", "500"});
  const auto cat = world.system.start_tenant(kCat);
  REQUIRE(cat->read_tokens(3));
  const LeaseId lease = cat->record().leases.back();
  const pid_t worker = world.system.worker().pid();
  REQUIRE(world.system.worker().signal(SIGSTOP));
  REQUIRE(eventually([&] { return is_stopped(worker); }));

  world.restart_broker();

  std::optional<int> status;
  CHECK(eventually([&] { return (status = world.system.worker().status()).has_value(); }));
  CHECK(status == 128 + SIGKILL);
  CHECK(world.system.eventually_fenced(lease));
  CHECK(world.system.lease(lease).reason == RevokeReason::WorkerGone);
  CHECK(cat->finish() != 0);
  CHECK(world.system.pool_is_fully_free());
}

TEST_CASE("restart: workers killed on their way back cost their own leases and nothing else") {
  for (const char* fault : {"worker.resumed:kill", "worker.redelivered:kill"}) {
    CAPTURE(fault);
    Restartable world;
    world.system.remove_worker("w1");
    world.system.start_worker("w2", fault);
    REQUIRE(eventually([&] { return world.system.worker_is_ready("w2"); }));
    const auto cat = world.system.start_tenant(kEndless);
    REQUIRE(cat->read_tokens(3));
    const LeaseId lease = cat->record().leases.back();

    world.restart_broker();

    CHECK(cat->finish() != 0);
    CHECK(world.system.eventually_fenced(lease));
    CHECK(world.system.pool_is_fully_free());
    world.system.start_worker("w3");
    REQUIRE(eventually([&] { return world.system.worker_is_ready("w3"); }));
    CHECK(world.system.undisturbed(kAnn) == Texts::undisturbed().ann);
  }
}

}  // namespace leasehold::testing
