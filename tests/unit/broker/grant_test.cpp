#include <catch2/catch.hpp>

#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

struct OneWorker : World {
  AttachmentId worker = attach_worker("w0", kWorkerSocket);
  OneWorker() { admit_tenant("a", 64); }
};

}  // namespace

TEST_CASE("acquire: the holder receives the lease once the worker has mapped it") {
  OneWorker world;
  world.workers_answer = false;

  const CallId call = world.acquire("a", 12);
  CHECK_FALSE(world.answers.contains(call));
  world.answer_grant();

  const auto acquired = world.answer<wire::LeaseAcquired>(call);
  CHECK(acquired.worker == "w0");
  CHECK(acquired.blocks == 16);  // whole extents of 8
  CHECK(world.table.word(acquired.lease.slot) ==
        LeaseWord::make(acquired.lease.generation, LeaseState::Live));
  const Worker& worker = *world.state.workers.find(world.worker);
  const auto claim = verify_token(worker.token_key, acquired.token);
  REQUIRE(claim);
  CHECK(*claim == LeaseClaim{acquired.lease, {"a"}});
}

TEST_CASE("acquire: memory, journal, word and descriptors follow in this order") {
  OneWorker world;
  world.forget_effects();
  world.acquire("a");
  const auto index = [&world](auto wanted) {
    for (std::size_t i = 0; i < world.effects.size(); ++i) {
      if (std::holds_alternative<decltype(wanted)>(world.effects[i])) return i;
    }
    return world.effects.size();
  };
  CHECK(index(effect::CreateExtents{}) + 1 == index(effect::Journal{}));
  CHECK(index(effect::Journal{}) < index(effect::PublishGrant{}));
  CHECK(index(effect::PublishGrant{}) < index(effect::SendGrant{}));
}

TEST_CASE("acquire: each refusal has its own error code") {
  OneWorker world;
  CHECK(world.refusal(world.acquire("unknown")) == Errc::UnknownTenant);
  CHECK(world.refusal(world.acquire("a", 65)) == Errc::QuotaBlocks);
  CHECK(world.refusal(world.call(kHolder, wire::LeaseAcquire{.tenant = {"a"}, .worker = "w9"})) ==
        Errc::UnknownWorker);
  world.admit_tenant("big", 1 << 20);
  world.acquire("a");
  CHECK(world.refusal(world.acquire("big", 128)) == Errc::PoolExhausted);
  CHECK(world.refusal(world.acquire("big", 129)) == Errc::BadRequest);  // 16 extents of 8

  const CallId negative = world.call(kHolder, wire::LeaseAcquire{.tenant = {"a"}, .ttl_ms = -7});
  CHECK(world.answers.at(negative).error().detail == "ttl_ms is -7; it must be 0 or more");

  World empty;
  empty.admit_tenant("a");
  CHECK(empty.refusal(empty.acquire("a")) == Errc::NoModelLoaded);
}

TEST_CASE("acquire: another user cannot acquire for a tenant that belongs to a user") {
  OneWorker world;
  world.call(kOperator, wire::TenantAdmit{.tenant = {"hers"}, .max_blocks = 64, .uid = 1001});
  const wire::LeaseAcquire acquire{.tenant = {"hers"}, .blocks = 8};
  CHECK(world.refusal(world.call(kHolder, acquire, 1002)) == Errc::UnknownTenant);
  CHECK(world.answers.at(world.call(kHolder, acquire, 1001)).has_value());
}

TEST_CASE("quota: a lease counts until it is fenced, a declared replacement is not counted twice") {
  OneWorker world;
  const LeaseId first = world.acquired("a", 40);
  CHECK(world.refusal(world.acquire("a", 32)) == Errc::QuotaBlocks);
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(first);  // stays Revoked while the unit runs
  CHECK(world.refusal(world.acquire("a", 32)) == Errc::QuotaBlocks);

  const wire::LeaseAcquire replacing{.tenant = {"a"}, .blocks = 32, .replaces = first};
  const CallId call = world.call(kHolder, replacing);

  CHECK(world.record(first).replaced_by == world.answer<wire::LeaseAcquired>(call).lease);
  CHECK(world.refusal(world.call(kHolder, replacing)) == Errc::QuotaBlocks);  // only once
  world.end_unit(world.worker);
  CHECK(world.proof_of(first) == "LaunchQuiet");
}

TEST_CASE("quota: a live lease cannot be replaced") {
  OneWorker world;
  const LeaseId first = world.acquired("a", 16);

  const wire::LeaseAcquire replacing{.tenant = {"a"}, .blocks = 16, .replaces = first};
  world.call(kHolder, replacing);

  CHECK_FALSE(world.record(first).replaced_by);
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(first);
  const auto next = world.answer<wire::LeaseAcquired>(world.call(kHolder, replacing));
  CHECK(world.record(first).replaced_by == next.lease);
}

TEST_CASE("quota: after a failed replacement another lease can replace the old one") {
  OneWorker world;
  const LeaseId first = world.acquired("a", 40);
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(first);
  const wire::LeaseAcquire replacing{.tenant = {"a"}, .blocks = 24, .replaces = first};
  world.memory_fails = true;
  CHECK(world.refusal(world.call(kHolder, replacing)) == Errc::OutOfMemory);
  CHECK_FALSE(world.record(first).replaced_by);
  world.memory_fails = false;

  const auto next = world.answer<wire::LeaseAcquired>(world.call(kHolder, replacing));

  CHECK(world.record(first).replaced_by == next.lease);
}

TEST_CASE("quota: a quota lowered below use refuses new blocks and revokes nothing") {
  OneWorker world;
  const LeaseId lease = world.acquired("a", 40);
  world.admit_tenant("a", 16);
  CHECK(world.record(lease).is(LeaseState::Live));
  CHECK(world.refusal(world.acquire("a", 8)) == Errc::QuotaBlocks);
}

TEST_CASE("grant: a refused grant is fenced by a quiet segment, not by assumption") {
  OneWorker world;
  world.workers_answer = false;
  world.begin_unit(world.worker, Touches::TenantMemory);
  const CallId call = world.acquire("a");
  const LeaseId lease = world.grants.front().grant.lease;

  world.answer_grant(false);

  CHECK(world.refusal(call) == Errc::OutOfMemory);
  CHECK(world.record(lease).is(LeaseState::Revoked));  // the worker had the descriptors
  world.end_unit(world.worker);
  CHECK(world.proof_of(lease) == "LaunchQuiet");
}

TEST_CASE("grant: a worker that does not answer delays no holder and keeps no memory") {
  OneWorker world;
  world.workers_answer = false;
  const CallId call = world.acquire("a");
  const auto sent = world.grants.front().grant;
  world.forget_effects();

  world.post(GrantAnswered{sent.lease, sent.extents, Error{Errc::TimedOut, "silence"}});

  CHECK(world.refusal(call) == Errc::TimedOut);
  CHECK(world.proof_of(sent.lease) == "LaunchQuiet");
  REQUIRE(world.unmaps.size() == 1);  // the worker maps late, then unmaps
  CHECK(world.performed<effect::PunchExtents>().size() == 1);
  world.answer_unmap();
  CHECK(world.performed<effect::PunchExtents>().size() == 2);
  CHECK(world.state.extents.free_extents() == 16);
}

TEST_CASE("grant: a grant that never left the broker is fenced by NeverMapped") {
  OneWorker world;
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.memory_fails = true;

  const CallId call = world.acquire("a");

  CHECK(world.refusal(call) == Errc::OutOfMemory);
  CHECK(world.proof_of(LeaseId{0, 1}) == "NeverMapped");
  CHECK(world.state.extents.free_extents() == 16);
}

TEST_CASE("grant: many extents are sent in several messages and the holder waits for the last") {
  BrokerConfig config = small_config();
  config.capacity_bytes = 256 * kMiB;
  World world(config);
  world.attach_worker("w0", kWorkerSocket);
  world.admit_tenant("a", 1024);
  world.workers_answer = false;
  const CallId call = world.acquire("a", 8 * 100);
  REQUIRE(world.grants.size() == 2);
  world.answer_grant();
  CHECK_FALSE(world.answers.contains(call));
  world.answer_grant();
  CHECK(world.answer<wire::LeaseAcquired>(call).blocks == 800);
}

TEST_CASE("grow: the lease gets extents up to the quota and answers when they are mapped") {
  OneWorker world;
  const LeaseId lease = world.acquired("a", 8);
  const auto grown = world.answer<wire::LeaseResized>(
      world.call(kHolder, wire::LeaseGrow{.lease = lease, .extents = 7}));
  CHECK(grown.extents == 8);
  CHECK(grown.blocks == 64);
  CHECK(world.refusal(world.call(kHolder, wire::LeaseGrow{.lease = lease})) == Errc::QuotaBlocks);
  CHECK(world.refusal(world.call(ConnectionId{99}, wire::LeaseGrow{.lease = lease})) ==
        Errc::UnknownLease);
}

TEST_CASE("shrink: returned extents are scrubbed and freed, the others stay") {
  OneWorker world;
  const LeaseId lease = world.acquired("a", 16);
  const LeaseId other = world.acquired("a", 8);
  const ExtentId own = world.record(lease).extents.front();
  const ExtentId foreign = world.record(other).extents.front();
  const CallId call = world.call(kWorkerSocket, wire::LeaseShrink{.lease = lease, .extents = 3});
  const auto asked = world.reclaims.front();

  world.post(ReclaimAnswered{lease, asked.call, std::vector{own, own, foreign, ExtentId{999}}});

  CHECK(world.answer<wire::LeaseResized>(call).blocks == 8);
  CHECK(world.state.extents.find(own) == nullptr);
  CHECK(world.state.extents.find(foreign)->state == ExtentState::Owned);
  CHECK(world.warnings.size() == 1);
}

TEST_CASE("attach: only the lease's own worker gets its memory again") {
  OneWorker world;
  world.attach_worker("w1", ConnectionId{11});
  const wire::LeaseAcquire acquire{.tenant = {"a"}, .blocks = 8, .worker = "w0"};
  const LeaseId lease = world.answer<wire::LeaseAcquired>(world.call(kHolder, acquire)).lease;
  world.forget_effects();

  const CallId stranger = world.call(ConnectionId{11}, wire::LeaseAttach{.lease = lease});
  const CallId grantee = world.call(kWorkerSocket, wire::LeaseAttach{.lease = lease});

  CHECK(world.refusal(stranger) == Errc::PermissionDenied);
  CHECK(world.answers.at(grantee).has_value());
  CHECK(world.performed<effect::SendGrant>().size() == 1);
}

TEST_CASE("grant: a worker gets no more extents than it has descriptors for") {
  World world;
  world.call(kWorkerSocket, wire::WorkerAttach{.worker = "w0"});
  world.call(kWorkerSocket, wire::WorkerReady{.address = "/run/w0",
                                              .model = "model",
                                              .kv_block_size_bytes = kTestBlockBytes,
                                              .max_extents = 3});
  world.admit_tenant("a", 1000);
  world.acquire("a", 16);  // two extents of 8 blocks

  const CallId refused = world.acquire("a", 16);
  CHECK(world.refusal(refused) == Errc::PoolExhausted);
  CHECK(world.answers.at(refused).error().detail.contains("descriptors for 3"));
  world.acquire("a", 8);
  CHECK(world.performed<effect::SendGrant>().size() == 2);
}
