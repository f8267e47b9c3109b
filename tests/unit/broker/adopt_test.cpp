// Memory of a tenant whose worker died: kept, adopted, or scrubbed.
#include <catch2/catch.hpp>

#include "broker/decide/lease/retention.hpp"
#include "tests/unit/broker/keeping_world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

TEST_CASE("adopt: the next lease gets the extents of a dead worker's tenant, not zeroed") {
  KeepingWorld world;
  world.kill_worker();
  REQUIRE(world.record(world.lease).is(LeaseState::Fenced));
  REQUIRE(world.is_retained());
  world.attach("w0", kSuccessorSocket, "same");
  world.workers_answer = false;

  const CallId call = world.replace();

  REQUIRE(world.grants.size() == 1);
  const wire::LeaseGrant grant = world.grants.front().grant;
  CHECK(grant.extents == world.extents);
  CHECK(grant.adopted_from == world.lease);
  world.answer_grant();
  const auto acquired = world.answer<wire::LeaseAcquired>(call);
  CHECK(acquired.adopted_blocks == 16);
  CHECK(acquired.blocks == 16);  // what the old lease had, although 8 were asked for
  CHECK(world.record(acquired.lease).extents == world.extents);
  CHECK(world.performed<effect::PunchExtents>().empty());
  CHECK(world.journal.extents.at(world.extents[0]).lease == acquired.lease);
  CHECK_FALSE(world.journal.leases.contains(world.lease));
}

TEST_CASE("adopt: memory is not handed on before the old worker has exited") {
  KeepingWorld world;
  world.lose_worker();
  REQUIRE(world.is_retained());
  world.attach("w0", kSuccessorSocket, "same");

  const auto acquired = world.answer<wire::LeaseAcquired>(world.replace());

  CHECK(acquired.adopted_blocks == 0);
  CHECK(world.in_state(ExtentState::Scrubbing) == 2);
  world.post(WorkerExited{exit_of(world.worker)});
  CHECK(world.is_scrubbed());
}

TEST_CASE("adopt: another tenant, holder, user, name or identity adopts nothing") {
  KeepingWorld world;
  world.kill_worker();
  SECTION("another tenant of the same connection") {
    world.attach("w0", kSuccessorSocket, "same");
    CHECK(world.refusal(world.replace("b")) == Errc::UnknownLease);
    CHECK(world.is_retained());
  }
  SECTION("another connection") {
    world.attach("w0", kSuccessorSocket, "same");
    CHECK(world.answer<wire::LeaseAcquired>(world.replace("a", kSecondHolder)).adopted_blocks == 0);
    CHECK(world.is_retained());
  }
  SECTION("a worker of another name") {
    world.attach("w1", kSuccessorSocket, "same");
    CHECK(world.answer<wire::LeaseAcquired>(world.replace()).adopted_blocks == 0);
    CHECK(world.is_scrubbed());
  }
  SECTION("a worker of another user") {
    world.attach("w0", kSuccessorSocket, "same", 7);
    CHECK(world.answer<wire::LeaseAcquired>(world.replace()).adopted_blocks == 0);
    CHECK(world.is_scrubbed());
  }
  SECTION("a worker of another identity") {
    world.attach("w0", kSuccessorSocket, "other");
    CHECK(world.answer<wire::LeaseAcquired>(world.replace()).adopted_blocks == 0);
    CHECK(world.is_scrubbed());
  }
  SECTION("a worker without an identity") {
    world.attach("w0", kSuccessorSocket, std::nullopt);
    CHECK(world.answer<wire::LeaseAcquired>(world.replace()).adopted_blocks == 0);
    CHECK(world.is_scrubbed());
  }
}

TEST_CASE("adopt: only a worker's death keeps memory") {
  KeepingWorld world;
  SECTION("not a revocation") {
    world.revoke(world.lease);
  }
  SECTION("not a release") {
    world.call(kHolder, wire::LeaseRelease{.lease = world.lease});
  }
  SECTION("not the end of the holder") {
    world.post(HolderExited{kHolder});
  }
  SECTION("not for a tenant that drains") {
    world.call(kOperator, wire::LeaseDrain{.tenant = TenantId{"a"}, .grace_ms = 1000});
  }
  world.kill_worker();
  CHECK(world.in_state(ExtentState::Retained) == 0);
  CHECK(world.is_scrubbed());
}

TEST_CASE("adopt: kept memory is scrubbed when no holder can adopt it any more") {
  KeepingWorld world;
  world.kill_worker();
  REQUIRE(world.is_retained());
  SECTION("the grace is over") {
    world.advance(10s);
  }
  SECTION("the holder's connection closed") {
    world.post(ConnectionClosed{kHolder});
  }
  SECTION("the holder exited") {
    world.post(HolderExited{kHolder});
  }
  SECTION("the holder releases it") {
    CHECK(world.refusal(world.call(kHolder, wire::LeaseRelease{.lease = world.lease})) ==
          Errc::LeaseFenced);
  }
  SECTION("the tenant's leases are revoked") {
    world.call(kOperator, wire::LeaseRevoke{.tenant = TenantId{"a"}});
  }
  SECTION("the tenant is drained") {
    world.call(kOperator, wire::LeaseDrain{.tenant = TenantId{"a"}, .grace_ms = 0});
  }
  SECTION("the tenant is removed") {
    world.call(kOperator, wire::TenantRemove{.tenant = {"a"}});
  }
  SECTION("the broker stops") {
    world.post(Shutdown{});
  }
  CHECK(world.state.retained.empty());
  CHECK(world.is_scrubbed());
  CHECK(world.state.leases.find_open(world.lease) == nullptr);
}

TEST_CASE("adopt: a demand that lacks room ends the retention of memory") {
  KeepingWorld world(keeping(4 * kMiB));  // two extents, both kept
  world.kill_worker();
  REQUIRE(world.is_retained());
  world.attach("w1", kSuccessorSocket, "same");

  const CallId first = world.acquire("b", 8, kSecondHolder);

  REQUIRE(world.refusal(first) == Errc::PoolExhausted);
  CHECK(world.answers.at(first).error().retry_after_ms == 50);
  CHECK(world.is_scrubbed());
  CHECK(world.answer<wire::LeaseAcquired>(world.acquire("b", 8, kSecondHolder)).blocks == 8);
}

TEST_CASE("adopt: a replacement that lacks room ends the retention of memory") {
  KeepingWorld world(keeping(8 * kMiB));  // four extents
  world.attach("w1", kSuccessorSocket, "same");
  const CallId second =
      world.call(kSecondHolder, wire::LeaseAcquire{.tenant = {"b"}, .blocks = 16, .worker = "w1"});
  const LeaseId live = world.answer<wire::LeaseAcquired>(second).lease;
  world.kill_worker();
  REQUIRE(world.is_retained());

  const CallId first = world.call(kSecondHolder, wire::LeaseReplace{.lease = live});

  REQUIRE(world.refusal(first) == Errc::PoolExhausted);
  CHECK(world.answers.at(first).error().retry_after_ms == 50);
  CHECK(world.is_scrubbed());
  const CallId again = world.call(kSecondHolder, wire::LeaseReplace{.lease = live});
  CHECK(world.answer<wire::LeaseAcquired>(again).blocks == 16);
}

TEST_CASE("adopt: a reserve does not count kept memory, which its tenant may adopt") {
  KeepingWorld world(keeping(8 * kMiB));  // four extents
  world.attach("w1", kSuccessorSocket, "same");
  world.kill_worker();
  REQUIRE(world.is_retained());

  const CallId admitted = world.call(
      kOperator,
      wire::TenantAdmit{.tenant = {"b"}, .reserved_blocks = 32, .tier = wire::Tier::Guaranteed});

  CHECK_FALSE(world.answers.at(admitted));
}

TEST_CASE("adopt: memory of a scavenger lease, which covers reserves, goes only to another one") {
  const bool is_scavenger = GENERATE(true, false);
  KeepingWorld world;
  wire::LeaseAcquire acquire{.tenant = {"a"}, .blocks = 8, .scavenger = true};
  acquire.replaces =
      world.answer<wire::LeaseAcquired>(world.call(kHolder, wire::LeaseAcquire(acquire))).lease;
  world.kill_worker();
  world.attach("w0", kSuccessorSocket, "same");
  acquire.scavenger = is_scavenger;
  const CallId call = world.call(kHolder, acquire);
  CHECK(world.answer<wire::LeaseAcquired>(call).adopted_blocks == (is_scavenger ? 8u : 0u));
}

TEST_CASE("adopt: a full lease table ends the retention of memory") {
  BrokerConfig config = keeping();
  config.slot_count = 2;
  KeepingWorld world(config);
  world.kill_worker();
  REQUIRE(world.is_retained());
  world.attach("w1", kSuccessorSocket, "same");
  world.acquired("b", 8, kSecondHolder);

  const bool publishes = GENERATE(false, true);
  const CallId first =
      publishes
          ? world.call(kOperator, wire::PrefixPublish{.worker = "w1", .text = "text", .name = "p"})
          : world.acquire("b", 8, kSecondHolder);

  REQUIRE(world.refusal(first) == Errc::PoolExhausted);
  CHECK(world.answers.at(first).error().retry_after_ms == 50);
  CHECK(world.is_scrubbed());
  CHECK(world.state.leases.has_free_slot());
}

TEST_CASE("adopt: a full table of workers ends retentions of workers that exited") {
  BrokerConfig config = keeping(2 * kMaxWorkers * kMiB + 4 * kMiB);
  config.slot_count = 2 * kMaxWorkers;
  KeepingWorld world(config);
  for (std::uint64_t i = 1; i < kMaxWorkers; ++i) {
    const ConnectionId socket{100 + i};
    const std::string name = "w" + std::to_string(i);
    const AttachmentId dying = world.attach(name, socket, "same");
    const CallId held =
        world.call(kHolder, wire::LeaseAcquire{.tenant = {"a"}, .blocks = 8, .worker = name});
    REQUIRE(world.answers.at(held));
    world.post(ConnectionClosed{socket});
    world.post(WorkerExited{exit_of(dying)});
  }
  world.kill_worker();
  REQUIRE(world.state.retained.size() == kMaxWorkers);
  const wire::WorkerAttach another{.worker = "another"};

  const CallId first = world.call(kSuccessorSocket, another);

  REQUIRE(world.refusal(first) == Errc::PoolExhausted);
  CHECK(world.answers.at(first).error().retry_after_ms == 50);
  CHECK(world.state.retained.size() == kMaxWorkers - 1);
  CHECK(world.answers.at(world.call(kSuccessorSocket, another)));
}

TEST_CASE("adopt: a holder that ends before the fence keeps no memory") {
  KeepingWorld world;
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.lose_worker();
  REQUIRE(world.record(world.lease).is(LeaseState::Revoked));
  SECTION("its connection closes") {
    world.post(ConnectionClosed{kHolder});
  }
  SECTION("it exits") {
    world.post(HolderExited{kHolder});
  }
  world.post(WorkerExited{exit_of(world.worker)});
  CHECK(world.state.retained.empty());
  CHECK(world.is_scrubbed());
}

TEST_CASE("adopt: an operator who revokes a lease whose memory is kept ends that") {
  KeepingWorld world;
  world.kill_worker();
  REQUIRE(world.is_retained());

  const CallId revoked = world.revoke(world.lease);

  CHECK(world.answer<wire::LeasesTouched>(revoked).leases == std::vector{world.lease});
  CHECK(world.is_scrubbed());
  CHECK(world.refusal(world.revoke(world.lease)) == Errc::LeaseFenced);
}

TEST_CASE("adopt: kept memory is not charged, and what does not fit the quota is scrubbed") {
  KeepingWorld world;
  world.kill_worker();
  world.admit_tenant("a", 8);  // half of what the old lease had
  world.attach("w0", kSuccessorSocket, "same");

  const auto acquired = world.answer<wire::LeaseAcquired>(world.replace());

  CHECK(acquired.adopted_blocks == 8);
  CHECK(world.record(acquired.lease).extents == std::vector{world.extents[0]});
  CHECK_FALSE(world.objects.contains(world.extents[1]));
}

TEST_CASE("adopt: a lease that names no worker goes to one that can adopt") {
  KeepingWorld world;
  world.attach("w1", kSuccessorSocket, "same");
  world.kill_worker();
  const AttachmentId back = world.attach("w0", ConnectionId{12}, "same");
  world.acquired("b", 8, kSecondHolder);  // on w1 or w0: one of them is busier then
  world.acquired("b", 8, kSecondHolder);

  const auto acquired = world.answer<wire::LeaseAcquired>(world.replace());

  CHECK(acquired.worker == "w0");
  CHECK(world.record(acquired.lease).worker() == back);
  CHECK(acquired.adopted_blocks == 16);
}

TEST_CASE("adopt: a restarted broker has no descriptor of kept memory, which is free then") {
  KeepingWorld world;
  world.kill_worker();
  REQUIRE(world.is_retained());

  World after(world, {.exited_workers = {exit_of(world.worker)}}, keeping());

  CHECK(after.state.extents.records().empty());
  CHECK(after.state.leases.open_count() == 0);
}

TEST_CASE("adopt: an adoption that cannot be journaled leaves nothing behind") {
  KeepingWorld world;
  world.kill_worker();
  world.attach("w0", kSuccessorSocket, "same");
  world.disk_full = true;

  CHECK(world.refusal(world.replace()) == Errc::DiskFull);

  CHECK(world.is_scrubbed());
  CHECK(world.in_state(ExtentState::Owned) == 0);
}
