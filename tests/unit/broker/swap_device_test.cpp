// Two kinds of memory in one lease: KV memory of a card, and swap in host memory.
#include <catch2/catch.hpp>

#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;

namespace {

constexpr ConnectionId kHolderOfOther{3};

/// Room for eight extents of swap, beside sixteen of the card's memory.
BrokerConfig card_swap_config() {
  BrokerConfig config = small_config();
  config.swap_capacity_bytes = 16 * kMiB;
  config.device = "cuda:0";
  return config;
}

/// A lease with one extent of the card and two of swap.
struct CardSwapping : LeasedWorld {
  CardSwapping() : LeasedWorld(card_swap_config()) {
    answer<wire::LeaseResized>(call(
        kWorkerSocket, wire::LeaseGrow{.lease = lease, .extents = 2, .pool = MemoryPool::Swap}));
    swap = state.extents.of_pool(MemoryPool::Swap, record(lease).extents);
    forget_effects();
  }
  std::uint64_t swap_bytes(ExtentState wanted) const {
    return state.extents.bytes_by_state(MemoryPool::Swap)[static_cast<std::size_t>(wanted)];
  }

  /// The extents of swap that were verified as host memory.
  std::vector<ExtentId> verified_swap() const {
    std::vector<ExtentId> verified;
    for (const auto& each : performed<effect::VerifyExtents>()) {
      if (each.pool == MemoryPool::Swap)
        std::ranges::copy(each.extents, std::back_inserter(verified));
    }
    return verified;
  }

  std::vector<ExtentId> swap;
};

}  // namespace

TEST_CASE("swap on a card: it is punched and verified, and the card's memory is cleared and held") {
  CardSwapping world;

  world.revoke(world.lease);

  CHECK(world.proof_of(world.lease) == "WorkerAck");
  CHECK(world.extent_state() == ExtentState::Held);
  CHECK(world.performed<effect::ClearExtents>().at(0).extents == std::vector{world.extent});
  const auto punched = world.performed<effect::PunchExtents>();
  REQUIRE(punched.size() == 1);
  CHECK(punched[0].extents == world.swap);
  CHECK(punched[0].pool == MemoryPool::Swap);
  CHECK(world.performed<effect::VerifyExtents>().size() == 1);
  CHECK(world.verified_swap() == world.swap);
  CHECK(world.swap_bytes(ExtentState::Free) == 16 * kMiB);
  const wire::StatusView status = status_view(world.state, world.clock.now());
  CHECK(status.held_bytes == 2 * kMiB);
  CHECK(status.swap.free_bytes == 16 * kMiB);
}

TEST_CASE(
    "swap on a card: a quiet segment punches nothing, the worker's reply for the lease does") {
  CardSwapping world;
  world.workers_answer = false;

  world.revoke(world.lease);

  REQUIRE(world.settles.size() == 1);  // the segment is quiet, and the card may still copy
  CHECK(world.performed<effect::PunchExtents>().empty());
  CHECK(world.swap_bytes(ExtentState::Draining) == 4 * kMiB);
  world.answer_settle();
  CHECK(world.performed<effect::PunchExtents>().at(0).extents == world.swap);
  CHECK(world.performed<effect::VerifyExtents>().empty());  // the worker still maps it
  CHECK(world.swap_bytes(ExtentState::Scrubbing) == 4 * kMiB);
  world.answer_unmap();
  CHECK(world.swap_bytes(ExtentState::Free) == 16 * kMiB);
}

TEST_CASE("swap on a card: the worker's exit is proof for both kinds of memory") {
  CardSwapping world;
  world.workers_answer = false;
  world.revoke(world.lease);
  world.answer_settle(/*settled=*/false);
  CHECK(world.performed<effect::PunchExtents>().empty());

  world.post(WorkerExited{exit_of(world.worker)});

  CHECK(world.proof_of(world.lease) == "ProcessExit");
  CHECK(world.performed<effect::PunchExtents>().at(0).extents == world.swap);
  CHECK(world.verified_swap() == world.swap);
  CHECK(world.state.extents.records().empty());
}

TEST_CASE("swap on a card: what a live lease returns is scrubbed and free, not held") {
  CardSwapping world;
  world.admit_tenant("b");
  const LeaseId other = world.acquired("b", 8, kHolderOfOther);
  const wire::LeaseGrow grow{.lease = other, .extents = 3, .pool = MemoryPool::Swap};
  world.answer<wire::LeaseResized>(world.call(kWorkerSocket, grow));
  world.call(kWorkerSocket, grow);
  REQUIRE(world.reclaims.size() == 1);

  const effect::SendReclaim asked = world.reclaims.front();
  world.post(ReclaimAnswered{asked.lease, asked.call, std::vector{world.swap[0]}, asked.pool});

  CHECK(world.state.extents.find(world.swap[0]) == nullptr);
  CHECK(world.performed<effect::PunchExtents>().at(0).extents == std::vector{world.swap[0]});
  CHECK(world.verified_swap() == std::vector{world.swap[0]});
  CHECK(world.performed<effect::ClearExtents>().empty());
  CHECK(world.swap_bytes(ExtentState::Owned) == 4 * 2 * kMiB);
}

TEST_CASE("swap on a card: the end of the agent takes no swap, and touched swap is quarantined") {
  CardSwapping world;
  world.touched.insert(world.swap[0]);
  world.post(DeviceLost{"killed"});

  CHECK(world.swap_bytes(ExtentState::Quarantined) == 2 * kMiB);
  CHECK(world.swap_bytes(ExtentState::Free) == 14 * kMiB);
  CHECK(quarantine_views(world.state).at(0).why.contains("were written after the fence"));
}

TEST_CASE("swap on a card: after a restart both kinds are counted until their worker exits") {
  CardSwapping before;

  World after(before, {.table = false}, card_swap_config());

  CHECK(reason_of(after.record(before.lease).lease) == RevokeReason::WorkerReplaced);
  CHECK(after.state.extents.free_extents(MemoryPool::Swap) == 6);
  CHECK(after.state.extents.free_extents() == 15);
  after.post(WorkerExited{exit_of(before.worker)});
  CHECK(after.state.extents.free_extents(MemoryPool::Swap) == 8);
  CHECK(after.state.extents.free_extents() == 16);
  CHECK(after.state.extents.records().empty());
}
