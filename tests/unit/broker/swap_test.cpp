// The second pool: host memory for the blocks of sequences that wait.
#include <catch2/catch.hpp>

#include "broker/server/views/tenant_views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr ConnectionId kOtherHolder{3};

/// Room for eight extents of swap, beside sixteen of KV memory.
BrokerConfig swap_config(std::uint64_t swap_bytes = 16 * kMiB) {
  BrokerConfig config = small_config();
  config.swap_capacity_bytes = swap_bytes;
  return config;
}

struct Swapping : LeasedWorld {
  explicit Swapping(const BrokerConfig& config = swap_config()) : LeasedWorld(config) {}

  CallId grow(LeaseId of, std::uint32_t extents = 1, ConnectionId from = kWorkerSocket) {
    return call(from, wire::LeaseGrow{.lease = of, .extents = extents, .pool = MemoryPool::Swap});
  }
  wire::LeaseResized grown(LeaseId of, std::uint32_t extents = 1) {
    return answer<wire::LeaseResized>(grow(of, extents));
  }
  std::vector<ExtentId> swap_of(LeaseId of) {
    return state.extents.of_pool(MemoryPool::Swap, record(of).extents);
  }
  std::uint64_t swap_bytes(ExtentState wanted) const {
    return state.extents.bytes_by_state(MemoryPool::Swap)[static_cast<std::size_t>(wanted)];
  }
  const std::string& detail(CallId refused) const { return answers.at(refused).error().detail; }
  LeaseId lease_of(const std::string& tenant) {
    admit_tenant(tenant);
    return acquired(tenant, 8, kOtherHolder);
  }
};

}  // namespace

TEST_CASE("swap: the worker grows a lease, and no quota counts it") {
  Swapping world;
  world.admit_tenant("a", 8);  // its one extent

  const auto resized = world.grown(world.lease, 2);

  CHECK(resized.extents == 2);
  CHECK(resized.blocks == 16);
  const auto sent = world.performed<effect::SendGrant>().back().grant;
  CHECK(sent.pool == MemoryPool::Swap);
  CHECK(sent.extents == world.swap_of(world.lease));
  CHECK(world.record(world.lease).charged_blocks == 8);
  CHECK(world.swap_bytes(ExtentState::Owned) == 4 * kMiB);
  CHECK(world.state.extents.free_extents() == 15);
  CHECK(world.refusal(world.call(kHolder, wire::LeaseGrow{.lease = world.lease})) ==
        Errc::QuotaBlocks);
}

TEST_CASE("swap: status has a line for it that adds up, and lists show what leases hold") {
  Swapping world;
  world.grown(world.lease, 2);

  const wire::StatusView status = status_view(world.state, world.clock.now());
  const wire::SwapView& swap = status.swap;
  CHECK(swap.capacity_bytes == 16 * kMiB);
  CHECK(swap.owned_bytes == 4 * kMiB);
  CHECK(swap.free_bytes + swap.owned_bytes == swap.capacity_bytes);
  CHECK(status.owned_bytes == 2 * kMiB);
  const wire::LeaseView lease = lease_page(world.state, 0, 1).items.at(0);
  CHECK(lease.extents == 1);
  CHECK(lease.size_bytes == 2 * kMiB);
  CHECK(lease.swap_bytes == 4 * kMiB);
  const wire::TenantView tenant =
      tenant_views(world.state, std::nullopt, 1, world.clock.now()).at(0);
  CHECK(tenant.blocks_held == 8);
  CHECK(tenant.swap_blocks_held == 16);
  CHECK(extent_views(world.state, std::nullopt, 9).back().pool == MemoryPool::Swap);
}

TEST_CASE("swap: only the lease's worker may grow it") {
  Swapping world;
  world.attach_worker("w1", ConnectionId{11});
  const CallId holder = world.grow(world.lease, 1, kHolder);
  CHECK(world.refusal(holder) == Errc::PermissionDenied);
  CHECK(world.detail(holder).contains("only the worker of lease " + to_string(world.lease)));
  CHECK(world.refusal(world.grow(world.lease, 1, ConnectionId{11})) == Errc::PermissionDenied);
  CHECK(world.refusal(world.grow(world.lease, 1, ConnectionId{99})) == Errc::UnknownLease);
  CHECK(world.swap_of(world.lease).empty());
}

TEST_CASE("swap: an engine lease and an ended lease do not grow") {
  Swapping world;
  const CallId open = world.call(
      kWorkerSocket,
      wire::WeightsOpen{.model = "m", .layout_digest = std::string(64, 'a'), .size_bytes = kMiB});
  const LeaseId engine = world.answer<wire::WeightsOpened>(open).lease;
  CHECK(world.refusal(world.grow(engine)) == Errc::PermissionDenied);

  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(world.lease);
  CHECK(world.refusal(world.grow(world.lease)) == Errc::LeaseRevoked);
  world.end_unit(world.worker);
  CHECK(world.refusal(world.grow(world.lease)) == Errc::LeaseFenced);
  CHECK(world.refusal(world.grow({.slot = 60, .generation = 9})) == Errc::UnknownLease);
}

TEST_CASE("swap: without --swap-capacity, growth is PoolExhausted and says so") {
  Swapping world(small_config());
  const CallId call = world.grow(world.lease);
  CHECK(world.refusal(call) == Errc::PoolExhausted);
  CHECK(world.detail(call).contains("start it with --swap-capacity"));
}

TEST_CASE("swap: a worker gets no more than it has descriptors for, over both pools") {
  Swapping world;
  world.state.workers.find(world.worker)->max_extents = 3;
  world.grown(world.lease, 2);
  const CallId call = world.grow(world.lease);
  CHECK(world.refusal(call) == Errc::PoolExhausted);
  CHECK(world.detail(call).contains("descriptors for 3"));
}

TEST_CASE("swap: a tenant takes more only while it holds less than what is free") {
  Swapping world;
  const LeaseId other = world.lease_of("b");
  world.grown(world.lease, 4);  // alone it gets half of eight

  const CallId beyond = world.grow(world.lease);
  CHECK(world.refusal(beyond) == Errc::PoolExhausted);
  CHECK(world.detail(beyond).contains("4 of 8 are free and tenant a holds 4"));
  CHECK(world.refusal(world.grow(other, 3)) == Errc::PoolExhausted);  // all or nothing
  CHECK(world.grown(other, 2).extents == 2);
  CHECK(world.refusal(world.grow(other)) == Errc::PoolExhausted);
}

TEST_CASE("swap: a share counts all leases of the tenant, also one that is not scrubbed yet") {
  Swapping world;
  const LeaseId second = world.acquired("a", 8, kOtherHolder);
  world.grown(world.lease, 4);
  world.workers_answer = false;
  world.revoke(world.lease);  // fenced, not unmapped
  CHECK(world.refusal(world.grow(second)) == Errc::PoolExhausted);
  world.answer_unmap();
  world.workers_answer = true;
  CHECK(world.grown(second, 4).extents == 4);
}

TEST_CASE("swap: growth that finds no room asks the other leases for what they do not use") {
  Swapping world;
  const LeaseId other = world.lease_of("b");
  world.grown(world.lease, 4);
  world.grown(other, 2);

  const CallId refused = world.grow(other);
  CHECK(world.answers.at(refused).error().retry_after_ms > 0);
  REQUIRE(world.reclaims.size() == 1);
  const effect::SendReclaim asked = world.reclaims.front();
  CHECK(asked.lease == world.lease);
  CHECK(asked.pool == MemoryPool::Swap);
  CHECK(asked.count == 1);
  world.grow(other);
  CHECK(world.reclaims.size() == 1);  // once until it is answered

  const ExtentId unused = world.swap_of(world.lease).front();
  world.post(ReclaimAnswered{asked.lease, asked.call, std::vector{unused}, asked.pool});
  CHECK(world.swap_bytes(ExtentState::Free) == 6 * kMiB);
  CHECK(world.record(world.lease).charged_blocks == 8);
  CHECK(world.grown(other).extents == 3);
}

TEST_CASE("swap: no lease is asked when the tenant alone uses up its share") {
  Swapping world;
  world.lease_of("b");
  world.grown(world.lease, 4);
  const CallId refused = world.grow(world.lease);
  CHECK(world.answers.at(refused).error().retry_after_ms == 0);
  CHECK(world.reclaims.empty());
}

TEST_CASE("swap: a worker that returns an extent of the other pool keeps it charged") {
  Swapping world;
  const LeaseId other = world.lease_of("b");
  world.grown(world.lease, 4);
  world.grow(other, 3);
  const effect::SendReclaim asked = world.reclaims.front();

  world.post(ReclaimAnswered{asked.lease, asked.call, std::vector{world.extent}, asked.pool});

  CHECK(world.extent_state() == ExtentState::Owned);
  CHECK(world.record(world.lease).charged_blocks == 8);
  CHECK(world.warnings.size() == 1);
  CHECK(world.warnings.front().contains("pool=swap returned=1 accepted=0"));

  const ExtentId swap = world.swap_of(world.lease).front();
  const CallId shrink = world.call(kHolder, wire::LeaseShrink{.lease = world.lease});
  world.post(ReclaimAnswered{world.lease, shrink, std::vector{swap}});
  CHECK(world.answer<wire::LeaseResized>(shrink).extents == 1);
  CHECK(world.state.extents.find(swap)->state == ExtentState::Owned);
}

TEST_CASE("swap: extents returned after the broker gave up waiting are free all the same") {
  Swapping world;
  const LeaseId other = world.lease_of("b");
  world.grown(world.lease, 4);
  world.grow(other, 3);
  const effect::SendReclaim asked = world.reclaims.front();
  const Error silence{Errc::TimedOut, "no answer"};
  world.post(ReclaimAnswered{asked.lease, asked.call, std::unexpected(silence), asked.pool});

  const ExtentId unused = world.swap_of(world.lease).front();
  world.post(ReclaimAnswered{asked.lease, asked.call, std::vector{unused}, asked.pool});

  CHECK(world.state.extents.find(unused) == nullptr);
}

TEST_CASE("swap: growth mapped after the worker's call timed out is asked back") {
  Swapping world;
  world.workers_answer = false;
  const CallId call = world.grow(world.lease, 2);
  const wire::LeaseGrant sent = world.grants.front().grant;
  world.post(GrantAnswered{sent.lease, sent.extents, Error{Errc::TimedOut, "no answer"}});
  CHECK(world.refusal(call) == Errc::TimedOut);

  world.answer_grant();

  REQUIRE(world.reclaims.size() == 1);
  CHECK(world.reclaims.front().pool == MemoryPool::Swap);
  CHECK(world.reclaims.front().count == 2);
}

TEST_CASE("swap: a worker that cannot map a growth keeps nothing") {
  Swapping world;
  world.workers_answer = false;
  const CallId call = world.grow(world.lease);
  world.answer_grant(false);
  CHECK(world.refusal(call) == Errc::OutOfMemory);
  CHECK(world.swap_bytes(ExtentState::Free) == 16 * kMiB);
  CHECK(world.record(world.lease).extents == std::vector{world.extent});
}

TEST_CASE("swap: a revoked lease's swap is fenced, punched, verified and free with its KV memory") {
  Swapping world;
  world.grown(world.lease, 2);
  const auto swap = world.swap_of(world.lease);
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.workers_answer = false;
  world.revoke(world.lease);
  CHECK(world.swap_bytes(ExtentState::Draining) == 4 * kMiB);

  world.end_unit(world.worker);
  CHECK(world.swap_bytes(ExtentState::Scrubbing) == 4 * kMiB);
  const auto punched = world.performed<effect::PunchExtents>();
  REQUIRE(punched.size() == 2);
  CHECK(punched[0].extents == std::vector{world.extent});
  CHECK(punched[1].pool == MemoryPool::Swap);
  CHECK(punched[1].extents == swap);
  CHECK(world.performed<effect::VerifyExtents>().empty());
  world.answer_unmap();

  CHECK(world.performed<effect::VerifyExtents>().back().pool == MemoryPool::Swap);
  CHECK(world.swap_bytes(ExtentState::Free) == 16 * kMiB);
  CHECK(world.state.extents.records().empty());
}

TEST_CASE("swap: an extent written to after its fence is quarantined until it is released") {
  Swapping world;
  world.grown(world.lease);
  const ExtentId swap = world.swap_of(world.lease).front();
  world.touched.insert(swap);
  world.revoke(world.lease);
  CHECK(world.swap_bytes(ExtentState::Quarantined) == 2 * kMiB);
  CHECK(world.state.extents.free_extents() == 16);
  CHECK(quarantine_views(world.state).at(0).extent == swap);

  world.touched.clear();
  world.answer<wire::QuarantineReleased>(
      world.call(kOperator, wire::QuarantineRelease{.extent = swap, .reason = kReason}));

  CHECK(world.swap_bytes(ExtentState::Free) == 16 * kMiB);
  CHECK(world.performed<effect::VerifyExtents>().back().pool == MemoryPool::Swap);
}

TEST_CASE("swap: lease.attach sends the extents of each pool in a grant of its own") {
  Swapping world;
  world.grown(world.lease, 2);
  world.forget_effects();
  world.call(kWorkerSocket, wire::LeaseAttach{.lease = world.lease});
  const auto sent = world.performed<effect::SendGrant>();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].grant.extents == std::vector{world.extent});
  CHECK(sent[1].grant.pool == MemoryPool::Swap);
  CHECK(sent[1].grant.extents == world.swap_of(world.lease));
}

TEST_CASE("swap: neither a full disk nor a failed allocation leaves swap with the lease") {
  Swapping world;
  world.memory_fails = true;
  CHECK(world.refusal(world.grow(world.lease)) == Errc::OutOfMemory);
  world.memory_fails = false;
  world.disk_full = true;
  CHECK(world.refusal(world.grow(world.lease)) == Errc::DiskFull);
  CHECK(world.swap_of(world.lease).empty());
  CHECK(world.swap_bytes(ExtentState::Free) == 16 * kMiB);
}

// ------------------------------------------------------------------------------------- restart

namespace {

/// The worker returns to the restarted broker with these extents.
void return_with(World& world, AttachmentId worker, LeaseId lease, std::vector<ExtentId> extents) {
  world.call(kReturnSocket, wire::WorkerAttach{.worker = "w0", .resume = worker});
  world.answer<wire::Empty>(world.call(
      kReturnSocket, wire::LeaseRedeliver{.lease = lease, .extents = std::move(extents)}));
  world.call(kReturnSocket,
             wire::WorkerReady{.address = "/run/w0", .kv_block_size_bytes = kTestBlockBytes});
}

}  // namespace

TEST_CASE("swap: a restarted broker keeps what its worker redelivers, in its pool") {
  Swapping before;
  before.grown(before.lease, 2);
  const auto extents = before.record(before.lease).extents;
  World after(before, {}, swap_config());

  return_with(after, before.worker, before.lease, extents);

  CHECK(after.record(before.lease).is(LeaseState::Live));
  CHECK(after.record(before.lease).extents == extents);
  CHECK(after.state.extents.of_pool(MemoryPool::Swap, extents).size() == 2);
  CHECK(after.state.extents.free_extents(MemoryPool::Swap) == 6);
  CHECK(after.record(before.lease).charged_blocks == 8);
}

TEST_CASE("swap: a growth that never reached the worker is free after a restart") {
  Swapping before;
  before.workers_answer = false;
  before.grow(before.lease, 2);
  World after(before, {}, swap_config());

  return_with(after, before.worker, before.lease, {before.extent});

  CHECK(after.record(before.lease).is(LeaseState::Live));
  CHECK(after.record(before.lease).extents == std::vector{before.extent});
  CHECK(after.state.extents.free_extents(MemoryPool::Swap) == 8);
  CHECK(after.record(before.lease).charged_blocks == 8);
}

TEST_CASE("swap: a broker restarted with less swap than leases hold names the option") {
  Swapping before;
  before.grown(before.lease, 2);
  const Facts facts{.now = before.clock.now(), .boot_id = before.journal.boot_id};

  const auto recovered = recover(before.journal, facts, swap_config(2 * kMiB));

  REQUIRE_FALSE(recovered);
  CHECK(recovered.error().code == Errc::BadRequest);
  CHECK(
      recovered.error().detail.contains("hold 4194304 bytes; start with at least this "
                                        "--swap-capacity"));
}
