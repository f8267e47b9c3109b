#include "ipc/segment/gate_set.hpp"

#include <array>
#include <catch2/catch.hpp>

#include "tests/support/fake_table.hpp"

using namespace leasehold;
using testing::FakeTable;

namespace {

SequenceMask recheck(const GateSet& set) {
  return set.recheck(set.all(), LaunchSite::KvAppend, 3);
}

}  // namespace

TEST_CASE("gate set: a sequence is live when every word is as granted") {
  FakeTable table;
  const auto set = table.step(3);
  CHECK(set->sequence_count() == 3);
  CHECK(recheck(*set) == 0b111);
  CHECK(table.listener().refusals().empty());
}

TEST_CASE("gate set: sixty-four sequences fill the mask") {
  FakeTable table;
  const auto set = table.step(kMaxStepSequences);
  CHECK(set->all() == ~SequenceMask{0});
  CHECK(recheck(*set) == ~SequenceMask{0});
}

TEST_CASE("gate set: a refusal names sequence, granted word, found word and site") {
  FakeTable table;
  const auto set = table.step(3);
  table.revoke(FakeTable::slot_of(1), RevokeReason::TtlExpired);
  CHECK(recheck(*set) == 0b101);
  const auto refusals = table.listener().refusals();
  REQUIRE(refusals.size() == 1);
  CHECK(refusals[0].sequence == 1);
  CHECK(refusals[0].slot == FakeTable::slot_of(1));
  CHECK(refusals[0].granted == LeaseWord::make(1, LeaseState::Live));
  CHECK(refusals[0].seen == LeaseWord::make(1, LeaseState::Revoked, RevokeReason::TtlExpired));
  CHECK(refusals[0].local == LocalStop::None);
  CHECK(refusals[0].site == LaunchSite::KvAppend);
  CHECK(refusals[0].layer == 3);
}

TEST_CASE("gate set: a live word of another generation, or a blank word, refuses") {
  FakeTable table;
  const auto set = table.step(2);
  table.grant(FakeTable::slot_of(0), /*generation=*/2);
  CHECK(recheck(*set) == 0b10);
  std::atomic<std::uint64_t> blank{0};
  GateSet other(9, table.stops(), table.listener());
  other.add_sequence(std::array{
      LeaseDependency{.slot = 5, .granted = LeaseWord::make(1, LeaseState::Live), .word = &blank}});
  CHECK(recheck(other) == 0);
}

TEST_CASE("gate set: a sequence with several leases needs every one of them") {
  FakeTable table;
  GateSet set(1, table.stops(), table.listener());
  set.add_sequence(std::array{table.grant(1), table.grant(2), table.grant(3)});
  CHECK(recheck(set) == 0b1);
  table.revoke(3);
  CHECK(recheck(set) == 0);
  REQUIRE(table.listener().refusals().size() == 1);
  CHECK(table.listener().refusals()[0].slot == 3);
}

TEST_CASE("gate set: a refused engine lease refuses every sequence and is reported once") {
  FakeTable table;
  const auto set = table.step(3);
  CHECK_FALSE(set->engine_refused());
  table.revoke(FakeTable::kEngineSlot, RevokeReason::ModelUnloaded);
  CHECK(recheck(*set) == 0);
  CHECK(recheck(*set) == 0);
  CHECK(set->engine_refused());
  const auto refusals = table.listener().refusals();
  REQUIRE(refusals.size() == 1);
  CHECK(refusals[0].sequence == GateRefusal::kEngine);
  CHECK(refusals[0].seen.reason() == RevokeReason::ModelUnloaded);
}

TEST_CASE(
    "gate set: a step on several engine leases needs each of them, and names the revoked one") {
  for (const std::uint32_t down : {10u, 11u, 12u}) {
    FakeTable table;
    GateSet set(1, table.stops(), table.listener());
    set.add_engine_leases(std::array{table.grant(10), table.grant(11), table.grant(12)});
    set.add_sequence(std::array{table.grant(1)});
    CHECK(recheck(set) == 0b1);
    table.revoke(down);
    CHECK(recheck(set) == 0);
    REQUIRE(table.listener().refusals().size() == 1);
    CHECK(table.listener().refusals()[0].sequence == GateRefusal::kEngine);
    CHECK(table.listener().refusals()[0].slot == down);
  }
}

TEST_CASE("gate set: a refused sequence stays refused and is reported once") {
  FakeTable table;
  const auto set = table.step(2);
  table.revoke(FakeTable::slot_of(0));
  CHECK(recheck(*set) == 0b10);
  CHECK(recheck(*set) == 0b10);
  CHECK(table.listener().refusals().size() == 1);
}

TEST_CASE("gate set: only sequences that the caller holds live are compared") {
  FakeTable table;
  const auto set = table.step(2);
  table.revoke(FakeTable::slot_of(0));
  CHECK(set->recheck(0b10, LaunchSite::Commit, 0) == 0b10);
  CHECK(table.listener().refusals().empty());
}

TEST_CASE("stop flags: a local stop refuses its sequence with its reason and no other") {
  FakeTable table;
  const auto set = table.step(2);
  table.stops().stop(1, LocalStop::DeadlineExceeded);
  CHECK(recheck(*set) == 0b01);
  const auto refusals = table.listener().refusals();
  REQUIRE(refusals.size() == 1);
  CHECK(refusals[0].sequence == 1);
  CHECK(refusals[0].local == LocalStop::DeadlineExceeded);
}

TEST_CASE("stop flags: the first reason stays, and a cleared slot is free again") {
  FakeTable table;
  StopFlags& stops = table.stops();
  const std::uint64_t before = stops.changes().load();
  stops.stop(1, LocalStop::Cancelled);
  stops.stop(1, LocalStop::BrokerLost);
  CHECK(stops.read(1) == LocalStop::Cancelled);
  CHECK(stops.changes().load() > before);
  stops.clear(1);
  CHECK(stops.read(1) == LocalStop::None);
  CHECK(recheck(*table.step(2)) == 0b11);
}

TEST_CASE("stop flags: a sequence keeps its slot while its index in the step changes") {
  FakeTable table;
  GateSet set(1, table.stops(), table.listener());
  set.add_sequence(std::array{table.grant(1)}, /*stop_slot=*/7);
  set.add_sequence(std::array{table.grant(2)}, /*stop_slot=*/0);
  table.stops().stop(7, LocalStop::Cancelled);
  CHECK(recheck(set) == 0b10);
}
