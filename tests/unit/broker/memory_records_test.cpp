// The audit records about the memory of leases, as the broker decides them.
#include <catch2/catch.hpp>

#include "tests/unit/broker/adapter_world.hpp"
#include "tests/unit/broker/keeping_world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;
using journal::LeaseErasedRow;
using journal::LeaseGrantedRow;
using wire::ErasureState;
using wire::MemoryFate;

namespace {

BrokerConfig on_device() {
  BrokerConfig config = small_config();
  config.device = "cuda:0";
  return config;
}

/// The only record of its kind since the last `forget_effects`.
template <class Row>
auto only(const World& world) {
  const auto rows = world.rows<Row>();
  REQUIRE(rows.size() == 1);
  return rows[0].record;
}

/// "3 kv open>verified_zero" for each entry.
std::vector<std::string> settled(const wire::LeaseErasedRecord& record) {
  std::vector<std::string> all;
  for (const wire::MemorySettled& each : record.settled) {
    CHECK(each.bytes == each.extents * 2 * kMiB);
    all.push_back(std::to_string(each.extents) + " " + std::string(name(each.pool)) + " " +
                  std::string(name(each.from)) + ">" + std::string(name(each.to)));
  }
  return all;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("memory records: a lease is granted and erased, with its proof, in two transactions") {
  ServingWorld world;
  const LeaseId lease = world.acquired("a", 16);
  const auto granted = only<LeaseGrantedRow>(world);
  CHECK(granted.lease == lease);
  CHECK(granted.tenant == "a");
  CHECK(granted.worker == "w0");
  CHECK(granted.opens);
  REQUIRE(granted.granted.size() == 1);
  CHECK(granted.granted[0].extents == 2);
  CHECK(granted.granted[0].bytes == 4 * kMiB);
  world.forget_effects();

  world.revoke(lease);

  const auto erased = only<LeaseErasedRow>(world);
  CHECK(settled(erased) == Texts{"2 kv open>verified_zero"});
  CHECK(erased.reason == "operator");
  CHECK(erased.proof == "LaunchQuiet");
  CHECK(erased.scope == wire::LeaseScope::Tenant);
  CHECK(erased.open_extents == 0);
  CHECK(erased.state == ErasureState::Erased);
  for (const auto& written : world.performed<effect::Journal>()) {
    const auto has = [&written](auto wanted) {
      return std::ranges::any_of(written.batch.rows, [&](const journal::Row& row) {
        return std::holds_alternative<decltype(wanted)>(row);
      });
    };
    CHECK(has(LeaseErasedRow{}) == has(journal::LeaseGone{}));
  }
  CHECK(world.ledger.mismatch(world.journal) == "");
}

TEST_CASE("memory records: nothing is erased before it is verified") {
  LeasedWorld world;
  world.workers_answer = false;
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(world.lease);
  world.end_unit(world.worker);
  CHECK(world.record(world.lease).is(LeaseState::Fenced));
  CHECK(world.rows<LeaseErasedRow>().empty());
  world.answer_unmap();
  CHECK(only<LeaseErasedRow>(world).state == ErasureState::Erased);
}

TEST_CASE("memory records: the key of spilled blocks is destroyed with the mapping") {
  BrokerConfig config = small_config();
  config.lends_spill = GENERATE(false, true);
  LeasedWorld world(config);
  world.revoke(world.lease);
  CHECK(only<LeaseErasedRow>(world).spill_key_destroyed == config.lends_spill);
}

TEST_CASE("memory records: growth and shrink are records of a live lease") {
  LeasedWorld world;
  world.forget_effects();
  world.call(kHolder, wire::LeaseGrow{.lease = world.lease, .extents = 2});
  const auto grown = only<LeaseGrantedRow>(world);
  CHECK_FALSE(grown.opens);
  CHECK(grown.granted[0].extents == 2);
  const ExtentId last = world.record(world.lease).extents.back();
  const CallId shrink = world.call(kHolder, wire::LeaseShrink{.lease = world.lease});

  world.post(ReclaimAnswered{world.lease, shrink, std::vector{last}});

  const auto shrunk = only<LeaseErasedRow>(world);
  CHECK(settled(shrunk) == Texts{"1 kv open>verified_zero"});
  CHECK(shrunk.reason.empty());
  CHECK(shrunk.proof.empty());
  CHECK(shrunk.open_extents == 2);
  CHECK(shrunk.state == ErasureState::Open);
  CHECK(world.ledger.mismatch(world.journal) == "");
}

TEST_CASE("memory records: a quarantined extent keeps its lease from being erased") {
  LeasedWorld world;
  world.touched.insert(world.extent);
  world.revoke(world.lease);
  const auto kept = only<LeaseErasedRow>(world);
  CHECK(settled(kept) == Texts{"1 kv open>quarantined"});
  CHECK(kept.state == ErasureState::Quarantined);
  world.touched.clear();
  world.forget_effects();

  SECTION("until an operator releases it") {
    world.call(kOperator, wire::QuarantineRelease{.extent = world.extent, .reason = kReason});
    const auto late = only<LeaseErasedRow>(world);
    CHECK(settled(late) == Texts{"1 kv quarantined>verified_zero"});
    CHECK(late.tenant == "a");
    CHECK_FALSE(late.scope);
    CHECK(late.state == ErasureState::Erased);
    CHECK(world.ledger.mismatch(world.journal) == "");
  }
  SECTION("also by the next broker, which has no descriptor of it") {
    World after(world, {.exited_workers = {exit_of(world.worker)}});
    CHECK(after.ledger.mismatch(after.journal) == "");
    after.forget_effects();
    after.call(kOperator, wire::QuarantineRelease{.extent = world.extent, .reason = kReason});
    CHECK(settled(only<LeaseErasedRow>(after)) == Texts{"1 kv quarantined>freed_unchecked"});
    CHECK(after.ledger.erased == 1);
  }
}

TEST_CASE("memory records: adopted memory leaves its first lease and enters the other") {
  KeepingWorld world;
  world.kill_worker();
  CHECK(world.rows<LeaseErasedRow>().empty());
  world.attach("w0", kSuccessorSocket, "same");
  world.forget_effects();

  const LeaseId next = world.answer<wire::LeaseAcquired>(world.replace()).lease;

  const auto left = only<LeaseErasedRow>(world);
  CHECK(left.lease == world.lease);
  CHECK(settled(left) == Texts{"2 kv open>adopted_by"});
  CHECK(left.settled[0].adopted_by == next);
  CHECK(left.proof == "LaunchQuiet");
  CHECK(left.state == ErasureState::Erased);
  const auto granted = only<LeaseGrantedRow>(world);
  CHECK(granted.lease == next);
  CHECK(granted.granted[0].adopted_from == world.lease);
  CHECK(granted.granted[0].extents == 2);
  CHECK(world.ledger.mismatch(world.journal) == "");
}

TEST_CASE("memory records: memory of a card is held until it is lent again or its worker exits") {
  LeasedWorld world(on_device());
  world.revoke(world.lease);
  const auto held = only<LeaseErasedRow>(world);
  CHECK(settled(held) == Texts{"1 kv open>held"});
  CHECK(held.proof == "WorkerAck");
  CHECK(held.state == ErasureState::Held);
  world.forget_effects();

  SECTION("lent again") {
    const LeaseId next = world.acquired("a");
    CHECK(only<LeaseGrantedRow>(world).lease == next);
    const auto reused = only<LeaseErasedRow>(world);
    CHECK(reused.lease == world.lease);
    CHECK(settled(reused) == Texts{"1 kv held>cleared_for_reuse"});
    CHECK(reused.state == ErasureState::Erased);
  }
  SECTION("exited") {
    world.post(WorkerExited{exit_of(world.worker)});
    CHECK(settled(only<LeaseErasedRow>(world)) == Texts{"1 kv held>released_by_driver"});
  }
  SECTION("exited, and the driver does not report it free") {
    world.touched.insert(world.extent);
    world.post(WorkerExited{exit_of(world.worker)});
    const auto kept = only<LeaseErasedRow>(world);
    CHECK(settled(kept) == Texts{"1 kv held>quarantined"});
    CHECK(kept.state == ErasureState::Quarantined);
  }
  CHECK(world.ledger.mismatch(world.journal) == "");
}

TEST_CASE("memory records: after a restart of the machine all memory is gone, unchecked") {
  LeasedWorld before;
  World after(before, {.table = false, .same_boot = false});
  const auto erased = only<LeaseErasedRow>(after);
  CHECK(settled(erased) == Texts{"1 kv open>freed_unchecked"});
  CHECK(erased.proof == "MachineRestart");
  CHECK(erased.state == ErasureState::Erased);
  CHECK(after.ledger.mismatch(after.journal) == "");
}

TEST_CASE("memory records: a published text belongs to no tenant") {
  ServingWorld world;
  world.forget_effects();
  world.call(kOperator, wire::PrefixPublish{.worker = "w0", .text = "abc", .name = "manual"});
  const auto granted = only<LeaseGrantedRow>(world);
  CHECK(granted.scope == wire::LeaseScope::Shared);
  CHECK(granted.tenant.empty());
}

TEST_CASE("memory records: an adapter's records name its owner and its digest") {
  AdapterWorld world;
  world.add("style");
  world.forget_effects();
  const LeaseId lease = world.filled("style");
  const auto granted = only<LeaseGrantedRow>(world);
  CHECK(granted.scope == wire::LeaseScope::Adapter);
  CHECK(granted.tenant == "a");
  CHECK(granted.adapter_digest == kDigest);
  world.close(lease);
  const auto erased = only<LeaseErasedRow>(world);
  CHECK(erased.adapter_digest == kDigest);
  CHECK(erased.reason == "model_unloaded");
}

TEST_CASE("memory records: weights do not belong to a tenant, so their leases have no records") {
  ServingWorld world;
  const CallId open =
      world.call(kWorkerSocket, wire::WeightsOpen{.model = "m",
                                                  .file_inode = 1,
                                                  .layout_digest = std::string(64, 'a'),
                                                  .size_bytes = 8 * kMiB});
  const LeaseId lease = world.answer<wire::WeightsOpened>(open).lease;
  world.revoke(lease);
  CHECK(world.state.leases.find_open(lease) == nullptr);
  CHECK(world.rows<LeaseGrantedRow>().empty());
  CHECK(world.rows<LeaseErasedRow>().empty());
}
