#include <catch2/catch.hpp>

#include "broker/recovery/recovery_observer.hpp"
#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr ProcessIdentity kHolderProcess{1000, 0};  // the process of all World calls

struct BeforeRestart : ServingWorld {
  LeaseId lease = acquired("a", 16);
};

std::uint64_t free_bytes(const World& world) {
  return world.state.extents.bytes_by_state()[static_cast<unsigned>(ExtentState::Free)];
}

LeaseState word_state(const World& world, LeaseId lease) {
  return world.table.word(lease.slot).state();
}

}  // namespace

TEST_CASE("recovery: with the table kept a live lease and its memory are unchanged") {
  BeforeRestart before;
  const TimePoint deadline = before.record(before.lease).deadline;
  World after(before, {});

  const LeaseRecord& record = after.record(before.lease);
  CHECK(record.is(LeaseState::Live));
  CHECK(record.deadline == deadline);
  CHECK(record.tenant.value == "a");
  CHECK(record.holder == ConnectionId{});
  CHECK(record.charged_blocks == 16);
  CHECK(record.extents.size() == 2);
  CHECK(word_state(after, before.lease) == LeaseState::Live);
  CHECK(free_bytes(after) == 28 * kMiB);
  const Worker& worker = *after.state.workers.find(before.worker);
  CHECK(worker.state == WorkerState::Lost);
  CHECK(worker.reattach_until == after.clock.now() + 5s);
  CHECK(after.state.tenants.find({"a"}) != nullptr);
  CHECK(after.performed<effect::KillWorker>().empty());
}

TEST_CASE("recovery: an unclaimed lease runs to its deadline") {
  BeforeRestart before;
  World after(before, {});
  after.advance(10s);
  CHECK_FALSE(after.record(before.lease).is(LeaseState::Live));
}

TEST_CASE("recovery: a lease revoked only in the table is revoked") {
  BeforeRestart before;
  before.begin_unit(before.worker, Touches::TenantMemory);
  const journal::Image journaled = before.journal;
  before.revoke(before.lease);
  before.journal = journaled;  // the revocation was not written before the restart

  World after(before, {});

  CHECK(after.record(before.lease).is(LeaseState::Revoked));
  CHECK(reason_of(after.record(before.lease).lease) == RevokeReason::Operator);
  CHECK(after.journal.leases.at(before.lease).state == LeaseState::Live);
  const ExtentId extent = after.record(before.lease).extents.front();
  CHECK(after.state.extents.find(extent)->state == ExtentState::Draining);
  after.end_unit(before.worker);
  CHECK(after.proof_of(before.lease) == "LaunchQuiet");
}

TEST_CASE("recovery: a lease fenced only in the journal becomes fenced in the table") {
  BeforeRestart before;
  before.workers_answer = false;
  before.begin_unit(before.worker, Touches::TenantMemory);
  before.revoke(before.lease);
  journal::LeaseRow& row = before.journal.leases.at(before.lease);
  row.state = LeaseState::Fenced;
  row.fenced_ns = 1;
  row.proof = "ProcessExit";

  World after(before, {});

  CHECK(after.proof_of(before.lease) == "ProcessExit");
  CHECK(word_state(after, before.lease) == LeaseState::Fenced);
  CHECK(after.state.extents.find(after.record(before.lease).extents.front())->state ==
        ExtentState::Scrubbing);
}

TEST_CASE("recovery: a fence found only in the table counts") {
  BeforeRestart before;
  before.workers_answer = false;
  const journal::Image journaled = before.journal;
  before.revoke(before.lease);
  CHECK(word_state(before, before.lease) == LeaseState::Fenced);
  before.journal = journaled;

  World after(before, {});

  CHECK(after.record(before.lease).is(LeaseState::Fenced));
  CHECK(free_bytes(after) == 28 * kMiB);  // its worker may still map it
}

TEST_CASE("recovery: a grant that was journaled but not published is fenced by NeverMapped") {
  BeforeRestart before;
  const journal::Image then = before.journal;
  before.forget_effects();
  const LeaseId second = before.acquired("a");
  journal::Image journaled = before.journal;
  const LeaseId unpublished{second.slot + 1, second.generation};
  journal::LeaseRow row = journaled.leases.at(second);
  row.id = unpublished;
  journaled.leases[unpublished] = row;
  journaled.extents[{99}] = {.id = {99}, .lease = unpublished, .size_bytes = 2 * kMiB};
  before.journal = journaled;

  World after(before, {});

  CHECK(after.table.word(unpublished.slot) ==
        LeaseWord::make(unpublished.generation, LeaseState::Fenced, RevokeReason::Released));
  CHECK(after.state.leases.find_open(unpublished) == nullptr);
  CHECK(after.state.extents.find({99}) == nullptr);
  CHECK_FALSE(after.journal.leases.contains(unpublished));
}

TEST_CASE("recovery: a word without a row is fenced") {
  BeforeRestart before;
  const LeaseId second = before.acquired("a");
  before.journal.leases.erase(second);
  const auto belongs = [&](const auto& entry) { return entry.second.lease == second; };
  std::erase_if(before.journal.extents, belongs);

  World after(before, {});

  CHECK(word_state(after, second) == LeaseState::Fenced);
  CHECK(after.acquire("a") != CallId{});
  CHECK(free_bytes(after) == 28 * kMiB);
}

TEST_CASE("recovery: a row older than its slot is dropped with its extents") {
  BeforeRestart before;
  const journal::Image stale = before.journal;
  before.revoke(before.lease);
  for (int i = 0; i < 64; ++i) before.revoke(before.acquired("a"));  // uses every slot once
  before.journal = stale;

  World after(before, {});

  CHECK(after.state.leases.open_leases().empty());
  CHECK(after.state.extents.records().empty());
  CHECK(after.journal.leases.empty());
  CHECK(after.journal.extents.empty());
}

TEST_CASE("recovery: the leases of a worker that exited meanwhile are fenced") {
  BeforeRestart before;
  World after(before, {.exited_workers = {exit_of(before.worker)}});
  CHECK(after.proof_of(before.lease) == "ProcessExit");
  CHECK(word_state(after, before.lease) == LeaseState::Fenced);
  CHECK(free_bytes(after) == 32 * kMiB);
  CHECK(after.journal.workers.empty());
  CHECK(after.journal.leases.empty());
}

TEST_CASE("recovery: a holder that exited meanwhile loses its lease, a running one keeps it") {
  BeforeRestart before;
  World after(before, {.exited_holders = {kHolderProcess}});
  CHECK(reason_of(after.record(before.lease).lease) == RevokeReason::HolderGone);
}

TEST_CASE("recovery: without the table all leases are revoked and counted until the worker exits") {
  BeforeRestart before;
  World after(before, {.table = false});

  CHECK(after.table.word(before.lease.slot) == LeaseWord::make(before.lease.generation,
                                                               LeaseState::Revoked,
                                                               RevokeReason::WorkerReplaced));
  CHECK(free_bytes(after) == 28 * kMiB);
  CHECK(after.performed<effect::BeginQuietWatch>().empty());
  after.advance(1s);
  CHECK(after.record(before.lease).is(LeaseState::Revoked));  // elapsed time is not proof

  after.post(WorkerExited{exit_of(before.worker)});
  CHECK(after.proof_of(before.lease) == "ProcessExit");
  CHECK(free_bytes(after) == 32 * kMiB);
}

TEST_CASE("recovery: an orphaned worker is killed only after the deadlines it knows") {
  BeforeRestart before;
  const TimePoint deadline = before.record(before.lease).deadline;
  World after(before, {.table = false});

  after.advance(deadline - after.clock.now() + 1999ms);
  CHECK(after.performed<effect::KillWorker>().empty());
  after.advance(1ms);
  CHECK(after.performed<effect::KillWorker>().size() == 1);
}

TEST_CASE("recovery: without the table another worker of the same name serves at once") {
  BeforeRestart before;
  World after(before, {.table = false});
  const AttachmentId next = after.attach_worker("w0", ConnectionId{20});
  CHECK(next > before.worker);
  CHECK(after.state.workers.find(next)->index != after.state.workers.find(before.worker)->index);
  const LeaseId lease = after.acquired("a");
  CHECK(lease.generation > before.journal.reserved.generations);
}

TEST_CASE("recovery: generations, attachments and extent ids are never reused") {
  BeforeRestart before;
  std::set<LeaseId> seen{before.lease};
  std::uint64_t newest_extent = before.state.extents.highest_id();
  auto world = std::make_unique<World>(before, World::Survivors{.table = false});
  for (std::uint64_t start = 0; start < 4; ++start) {
    world->attach_worker("w" + std::to_string(start), ConnectionId{30 + start});
    CHECK(world->state.workers.highest_id() > 1024 * start);
    for (int i = 0; i < 100; ++i) {
      const LeaseId lease = world->acquired("a");
      CHECK(seen.insert(lease).second);
      CHECK(world->record(lease).extents.front().value > newest_extent);
      world->revoke(lease);
    }
    newest_extent = world->state.extents.highest_id();
    world = std::make_unique<World>(*world, World::Survivors{.table = false});
  }
}

TEST_CASE("recovery: a slot unused since its table was made continues above the earlier table") {
  BeforeRestart before;
  World stopped(before, {.table = false, .exited_workers = {exit_of(before.worker)}});
  World crashed(stopped, {});
  crashed.attach_worker("w1", ConnectionId{30});
  crashed.acquired("a");  // in the slot of the first lease, which the table has
  CHECK(crashed.acquired("a").generation > before.lease.generation);
}

TEST_CASE("recovery: after a reboot every lease is fenced and all bytes are free") {
  BeforeRestart before;
  before.begin_unit(before.worker, Touches::TenantMemory);
  before.acquired("a");
  before.revoke(before.lease);

  World after(before, {.table = false, .same_boot = false});

  const auto changes = after.recorded<events::LeaseStateChanged>();
  const std::string proof = "MachineRestart";
  CHECK(std::ranges::count(changes, proof, &events::LeaseStateChanged::proof) == 2);
  CHECK(word_state(after, before.lease) == LeaseState::Fenced);
  CHECK(free_bytes(after) == 32 * kMiB);
  CHECK(after.state.leases.open_leases().empty());
  CHECK(after.journal.leases.empty());
  CHECK(after.journal.workers.empty());
  CHECK(after.state.tenants.find({"a"}) != nullptr);
}

TEST_CASE("recovery: only another boot id is MachineRestart") {
  CHECK(RecoveryObserver::observe("a", "b").has_value());
  CHECK_FALSE(RecoveryObserver::observe("a", "a").has_value());
  CHECK_FALSE(RecoveryObserver::observe("", "a").has_value());
}

TEST_CASE("recovery: a repeated acquire gets its lease, a different call with its id is refused") {
  World before;
  const AttachmentId worker = before.attach_worker("w0", kWorkerSocket);
  before.admit_tenant("a");
  const wire::LeaseAcquire acquire{.tenant = {"a"}, .blocks = 8, .request_id = {"mine"}};
  const auto first = before.answer<wire::LeaseAcquired>(before.call(kHolder, acquire));

  World after(before, {});
  // The broker does not know yet whether the worker mapped it.
  CHECK(after.refusal(after.call(ConnectionId{50}, acquire)) == Errc::BrokerLost);
  const ConnectionId back{60};
  after.call(back, wire::WorkerAttach{.worker = "w0", .resume = worker});
  after.call(back, wire::LeaseRedeliver{.lease = first.lease,
                                        .extents = after.record(first.lease).extents});
  after.call(back,
             wire::WorkerReady{.address = first.address, .kv_block_size_bytes = kTestBlockBytes});

  const auto again = after.answer<wire::LeaseAcquired>(after.call(ConnectionId{50}, acquire));
  CHECK(again.lease == first.lease);
  CHECK(again.token == first.token);
  CHECK(again.address == first.address);
  CHECK(again.blocks == first.blocks);
  CHECK(after.record(first.lease).holder == ConnectionId{50});
  wire::LeaseAcquire other = acquire;
  other.blocks = 16;
  CHECK(after.refusal(after.call(ConnectionId{50}, other)) == Errc::RequestIdConflict);
}

TEST_CASE("recovery: a kept region stays shared, a lost one is counted until it is free") {
  World before;
  const AttachmentId worker = before.attach_worker("w0", kWorkerSocket);
  const wire::WeightsOpen open{
      .model = "m", .part = "blk.0", .file_size_bytes = 9, .size_bytes = 40 * kMiB};
  const auto opened = before.answer<wire::WeightsOpened>(before.call(kWorkerSocket, open));
  before.call(kWorkerSocket, wire::WeightsPublish{.region = opened.region});

  SECTION("kept") {
    World after(before, {.regions = {opened.region}});
    CHECK(after.state.weights.find(opened.region)->state == RegionState::Published);
    CHECK(after.record(opened.lease).is(LeaseState::Live));
    CHECK(after.record(opened.lease).part == "blk.0");
    after.post(WorkerExited{exit_of(worker)});
    CHECK(after.state.weights.find(opened.region)->state == RegionState::Retained);
  }
  SECTION("lost") {
    World after(before, {});
    CHECK(after.state.weights.find_usable(key_of(open, 0)) == nullptr);
    CHECK_FALSE(after.record(opened.lease).is(LeaseState::Live));
    CHECK(after.state.weights.free_bytes() == 24 * kMiB);
    after.post(WorkerExited{exit_of(worker)});
    CHECK(after.state.weights.free_bytes() == 64 * kMiB);
    CHECK(after.journal.regions.empty());
  }
}

TEST_CASE("recovery: an extent that was not verified before the restart is verified again") {
  BeforeRestart before;
  const ExtentId given = before.record(before.lease).extents.back();
  before.journal.extents.at(given).state = ExtentState::Scrubbing;

  World after(before, {});

  CHECK(after.state.extents.find(given) == nullptr);
  CHECK(after.record(before.lease).extents.size() == 1);
  CHECK_FALSE(after.journal.extents.contains(given));
}

TEST_CASE("recovery: quarantined extents stay quarantined") {
  BeforeRestart before;
  before.touched.insert(before.record(before.lease).extents.front());
  before.revoke(before.lease);
  World after(before, {});
  CHECK(free_bytes(after) == 30 * kMiB);
  CHECK(after.state.extents.records().begin()->second.state == ExtentState::Quarantined);
}

TEST_CASE("recovery: a capacity below the held bytes is refused, naming the option") {
  BeforeRestart before;
  before.journal.boot_id = "boot-1";
  BrokerConfig small = small_config();
  small.capacity_bytes = 2 * kMiB;
  const auto recovered = recover(before.journal, {.boot_id = "boot-1"}, small);
  REQUIRE_FALSE(recovered.has_value());
  CHECK(recovered.error().code == Errc::BadRequest);
  CHECK(recovered.error().detail.find("--capacity") != std::string::npos);
}

TEST_CASE("recovery: the table gets at least as many slots as earlier leases need") {
  BeforeRestart before;
  before.acquired("a");
  BrokerConfig fewer = small_config();
  fewer.slot_count = 1;
  World after(before, {.table = false}, fewer);
  CHECK(after.state.config.slot_count == 2);
}

TEST_CASE("recovery: the time of a grant is restored") {
  BeforeRestart before;
  before.clock.advance(3s);
  const LeaseId second = before.acquired("a");
  const TimePoint granted = before.clock.now();
  before.clock.advance(1s);

  World after(before, {});
  CHECK(after.record(second).granted_at == granted);
}

TEST_CASE("recovery: the reason of a quarantine is restored") {
  BeforeRestart before;
  before.touched.insert(before.record(before.lease).extents.at(0));
  before.clock.advance(1s);
  before.revoke(before.lease);
  const std::vector<wire::QuarantineView> fences = quarantine_views(before.state);
  REQUIRE(fences.size() == 1);

  World after(before, {});
  const std::vector<wire::QuarantineView> still = quarantine_views(after.state);
  REQUIRE(still.size() == 1);
  CHECK(still[0].worker == "w0");
  CHECK(still[0].since_boottime_ns == fences[0].since_boottime_ns);
  CHECK(still[0].why == fences[0].why);
}

TEST_CASE("recovery: a new boot id is journaled, and last") {
  journal::Image image;
  image.boot_id = "boot-1";
  const auto boot_of = [&](const std::string& boot) -> std::string {
    const auto effects = recover(image, {.boot_id = boot}, small_config()).value().effects;
    if (effects.empty()) return "";
    const auto& batch = std::get<effect::Journal>(effects.back()).batch;
    CHECK(batch.durable);
    return std::get<journal::BootRow>(batch.rows.at(0)).boot_id;
  };
  CHECK(boot_of("boot-1").empty());  // nothing to write, so a full disk does not prevent the start
  CHECK(boot_of("boot-2") == "boot-2");
}
