#include "ipc/segment/thread_gate.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <thread>
#include <vector>

#include "tests/support/fake_table.hpp"

using namespace leasehold;
using testing::FakeTable;

namespace {

constexpr UnitLabel kAppendInLayer2{LaunchSite::KvAppend, 2, Touches::TenantMemory};
constexpr auto kNothing = [](const LaunchPermit&) {};

/// Calls its hooks when a sequence is refused and when the refusing unit is over.
class HookedListener final : public RefusalListener {
 public:
  std::function<void(const GateRefusal&)> on_refused = [](const GateRefusal&) {};
  std::function<void()> on_progress = [] {};

  void refused(const GateRefusal& refusal) noexcept override { on_refused(refusal); }
  void refusing_unit_ended() noexcept override { on_progress(); }
};

class HookedProbe final : public GateProbe {
 public:
  std::function<void()> on_polled = [] {};
  void unit_polled(std::uint32_t thread, LaunchSite site, std::uint16_t layer,
                   SequenceMask live) override {
    last_thread = thread;
    last_site = site;
    last_layer = layer;
    last_live = live;
    on_polled();
  }

  std::uint32_t last_thread = 0;
  LaunchSite last_site = LaunchSite::Commit;
  std::uint16_t last_layer = 0;
  SequenceMask last_live = 0;
};

}  // namespace

TEST_CASE("thread gate: a unit runs with a permit for the live sequences") {
  FakeTable table;
  const auto set = table.step(2);
  auto gate = table.gate();
  SequenceMask seen = 0;
  CHECK(gate.run(*set, kAppendInLayer2,
                 [&](const LaunchPermit& permit) { seen = permit.live(); }) == 0b11);
  CHECK(seen == 0b11);
  CHECK(gate.units_run() == 1);
}

TEST_CASE("thread gate: the announcement lasts from before the poll until after the unit") {
  FakeTable table;
  HookedProbe probe;
  const auto set = table.step(1);
  auto gate = table.gate(3, &probe);
  const auto busy = announcement(2, Touches::TenantMemory);  // a new step is compared at 1
  std::uint64_t at_poll = 0;
  std::uint64_t in_unit = 0;
  probe.on_polled = [&] { at_poll = table.announcement_of(3); };

  gate.run(*set, kAppendInLayer2, [&](const LaunchPermit&) { in_unit = table.announcement_of(3); });

  CHECK(at_poll == busy);
  CHECK(in_unit == busy);
  CHECK(table.announcement_of(3) == announcement(2, Touches::Nothing));
  CHECK((probe.last_thread == 3 && probe.last_site == LaunchSite::KvAppend));
  CHECK((probe.last_layer == 2 && probe.last_live == 0b1));
}

TEST_CASE("thread gate: after a flip the next unit masks the sequence and runs the rest") {
  FakeTable table;
  const auto set = table.step(2);
  auto gate = table.gate();
  gate.run(*set, kAppendInLayer2, kNothing);
  table.revoke(FakeTable::slot_of(0));
  bool dead_row_ran = false;
  const auto live = gate.run(*set, kAppendInLayer2,
                             [&](const LaunchPermit& permit) { dead_row_ran = permit.is_live(0); });
  CHECK(live == 0b10);
  CHECK_FALSE(dead_row_ran);
  CHECK(table.listener().refusals().size() == 1);
}

TEST_CASE("thread gate: a unit without a live sequence does not run") {
  FakeTable table;
  const auto set = table.step(1);
  auto gate = table.gate();
  table.revoke(FakeTable::slot_of(0));
  bool ran = false;
  CHECK(gate.run(*set, kAppendInLayer2, [&](const LaunchPermit&) { ran = true; }) == 0);
  CHECK_FALSE(ran);
  CHECK(gate.units_run() == 0);
  CHECK(touches_of(table.announcement_of(0)) == Touches::Nothing);
}

TEST_CASE("thread gate: a refused engine lease ends the step for every gate") {
  FakeTable table;
  const auto set = table.step(3);
  auto gates = table.gates(2);
  table.revoke(FakeTable::kEngineSlot);
  for (auto& gate : gates) CHECK(gate.run(*set, kAppendInLayer2, kNothing) == 0);
  CHECK(set->engine_refused());
  CHECK(table.listener().refusals().size() == 1);
}

TEST_CASE(
    "thread gate: a local stop is seen by the next unit though no counter of the broker moved") {
  FakeTable table;
  const auto set = table.step(2);
  auto gate = table.gate();
  gate.run(*set, kAppendInLayer2, kNothing);
  table.stops().stop(1, LocalStop::Cancelled);
  CHECK(gate.run(*set, kAppendInLayer2, kNothing) == 0b01);
}

TEST_CASE("thread gate: a flip during the comparison of the words is seen before the unit runs") {
  FakeTable table;
  HookedListener listener;
  GateSet set(1, table.stops(), listener);
  set.add_sequence(std::array{table.grant(1)});
  set.add_sequence(std::array{table.grant(2)});
  auto gate = table.gate();
  table.revoke(2);
  // Sequence 0 has been compared when sequence 1 is refused; then its word is revoked.
  listener.on_refused = [&](const GateRefusal& refusal) {
    if (refusal.sequence == 1) table.revoke(1);
  };
  CHECK(gate.run(set, kAppendInLayer2, kNothing) == 0);
}

TEST_CASE("thread gate: no thread waits for one that reports a refusal") {
  FakeTable table;
  HookedListener listener;
  GateSet set(1, table.stops(), listener);
  set.add_sequence(std::array{table.grant(1)});
  auto gate = table.gate();
  gate.run(set, kAppendInLayer2, kNothing);
  table.revoke(1);
  std::uint64_t while_told = announcement(9, Touches::TenantMemory);
  listener.on_refused = [&](const GateRefusal&) { while_told = table.announcement_of(0); };
  CHECK(gate.run(set, kAppendInLayer2, kNothing) == 0);
  CHECK(touches_of(while_told) == Touches::Nothing);
}

TEST_CASE("thread gate: a local stop during the comparison is seen before the unit runs too") {
  FakeTable table;
  HookedListener listener;
  GateSet set(1, table.stops(), listener);
  set.add_sequence(std::array{table.grant(1)});
  set.add_sequence(std::array{table.grant(2)});
  auto gate = table.gate();
  table.revoke(2);
  listener.on_refused = [&](const GateRefusal& refusal) {
    if (refusal.sequence == 1) table.stops().stop(0, LocalStop::Cancelled);
  };
  CHECK(gate.run(set, kAppendInLayer2, kNothing) == 0);
}

TEST_CASE("thread gate: a new step is compared even when no counter moved") {
  FakeTable table;
  auto gate = table.gate();
  const auto first = table.step(2);
  CHECK(gate.run(*first, kAppendInLayer2, kNothing) == 0b11);
  const LeaseDependency stale = table.grant(FakeTable::slot_of(0), /*generation=*/1);
  const LeaseDependency valid = table.grant(FakeTable::slot_of(1), /*generation=*/1);
  table.grant(FakeTable::slot_of(0), /*generation=*/2);
  GateSet second(first->step() + 1, table.stops(), table.listener());
  second.add_sequence(std::array{stale});
  second.add_sequence(std::array{valid});
  CHECK(gate.run(second, kAppendInLayer2, kNothing) == 0b10);
}

TEST_CASE("thread gate: what one step refused does not mask the next one") {
  FakeTable table;
  auto gate = table.gate();
  const auto first = table.step(2);
  table.revoke(FakeTable::slot_of(0));
  CHECK(gate.run(*first, kAppendInLayer2, kNothing) == 0b10);
  CHECK(gate.run(*table.step(2), kAppendInLayer2, kNothing) == 0b11);
}

TEST_CASE(
    "thread gate: quiet progress is reported only after a refusing unit, when the thread is idle") {
  FakeTable table;
  HookedListener listener;
  GateSet set(1, table.stops(), listener);
  set.add_sequence(std::array{table.grant(1)});
  set.add_sequence(std::array{table.grant(2)});
  auto gate = table.gate();
  int reports = 0;
  bool was_idle = true;
  listener.on_progress = [&] {
    ++reports;
    was_idle &= touches_of(table.announcement_of(0)) == Touches::Nothing;
  };
  gate.run(set, kAppendInLayer2, kNothing);
  CHECK(reports == 0);
  table.revoke(1);
  gate.run(set, kAppendInLayer2, kNothing);
  CHECK(reports == 1);
  CHECK(was_idle);
  gate.run(set, kAppendInLayer2, kNothing);
  CHECK(reports == 1);
}

TEST_CASE("thread gate: several threads report a refusal once per sequence and step") {
  constexpr std::uint32_t kThreads = 4;
  constexpr int kSteps = 100;
  FakeTable table;
  std::vector<std::unique_ptr<GateSet>> steps;
  for (int i = 0; i < kSteps; ++i) steps.push_back(table.step(3));
  table.revoke(FakeTable::slot_of(0));
  table.revoke(FakeTable::slot_of(2));
  auto gates = table.gates(kThreads);
  std::vector<SequenceMask> wrong(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (const auto& step : steps)
          wrong[t] |= gates[t].run(*step, kAppendInLayer2, kNothing) ^ 0b010;
      });
    }
  }
  CHECK(wrong == std::vector<SequenceMask>(kThreads));
  CHECK(table.listener().refusals().size() == 2 * kSteps);
  CHECK(table.listener().progress() == kThreads * kSteps);
}
