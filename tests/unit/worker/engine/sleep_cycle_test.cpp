#include "worker/engine/sleep_cycle.hpp"

#include <catch2/catch.hpp>

namespace leasehold {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kIdleStart{1'000};

/// A worker that sleeps after 10 s without work, and has been idle since kIdleStart.
SleepCycle idle_cycle() {
  SleepCycle cycle(10s);
  REQUIRE_FALSE(cycle.take_idle(false, kIdleStart));
  return cycle;
}

}  // namespace

TEST_CASE("sleep cycle: idle time ends in one call, and work begins it anew") {
  SleepCycle cycle = idle_cycle();
  CHECK((cycle.idle_until() == kIdleStart + 10s));
  CHECK_FALSE(cycle.take_idle(false, kIdleStart + 9s));
  CHECK_FALSE(cycle.take_idle(true, kIdleStart + 9s));
  CHECK_FALSE(cycle.idle_until());
  CHECK_FALSE(cycle.take_idle(false, kIdleStart + 10s));
  CHECK(cycle.take_idle(false, kIdleStart + 20s));
  CHECK_FALSE(cycle.take_idle(false, kIdleStart + 21s));
  CHECK_FALSE(cycle.idle_until());

  cycle.on_sleep_refused(kIdleStart + 30s);
  CHECK((cycle.idle_until() == kIdleStart + 40s));
}

TEST_CASE("sleep cycle: without a limit the worker never asks to sleep") {
  SleepCycle cycle(Duration::zero());
  CHECK_FALSE(cycle.take_idle(false, kIdleStart));
  CHECK_FALSE(cycle.take_idle(false, kIdleStart + 24h));
  CHECK_FALSE(cycle.idle_until());
}

TEST_CASE("sleep cycle: an arrival wakes a sleeping worker, once") {
  SleepCycle cycle(Duration::zero());
  cycle.on_arrival();  // while awake
  REQUIRE(cycle.fall_asleep());
  CHECK_FALSE(cycle.fall_asleep());
  CHECK_FALSE(cycle.take_wake());
  cycle.on_arrival();
  CHECK(cycle.take_wake());
  CHECK_FALSE(cycle.take_wake());
  CHECK(cycle.begin_waking());
  CHECK(cycle.phase() == SleepPhase::Waking);
  CHECK(cycle.end_waking());
  CHECK(cycle.phase() == SleepPhase::Awake);
  CHECK_FALSE(cycle.end_waking());
}

TEST_CASE("sleep cycle: an arrival between the call to sleep and the order wakes the worker") {
  SleepCycle cycle = idle_cycle();
  REQUIRE(cycle.take_idle(false, kIdleStart + 10s));
  cycle.on_arrival();
  cycle.fall_asleep();
  CHECK(cycle.take_wake());
}

TEST_CASE("sleep cycle: a repeated order does not cancel an arrival") {
  SleepCycle cycle(Duration::zero());
  cycle.fall_asleep();  // by the lease word; the order follows
  cycle.on_arrival();
  cycle.fall_asleep();
  CHECK(cycle.take_wake());
}

TEST_CASE("sleep cycle: an order after a wake puts the worker to sleep again") {
  SleepCycle cycle(Duration::zero());
  cycle.fall_asleep();
  cycle.on_arrival();
  REQUIRE(cycle.take_wake());
  cycle.begin_waking();
  REQUIRE(cycle.fall_asleep());
  CHECK_FALSE(cycle.take_wake());
  cycle.on_arrival();
  CHECK(cycle.take_wake());
}

TEST_CASE("sleep cycle: a refused wake is repeated while requests wait") {
  SleepCycle cycle(Duration::zero());
  cycle.fall_asleep();
  cycle.on_arrival();
  REQUIRE(cycle.take_wake());
  cycle.on_wake_refused(true);
  CHECK(cycle.take_wake());
  cycle.on_wake_refused(false);
  CHECK_FALSE(cycle.take_wake());
  CHECK(cycle.is_asleep());
}

TEST_CASE("sleep cycle: a waking worker that gives up asks to sleep once, an awake one never") {
  SleepCycle cycle(Duration::zero());
  CHECK_FALSE(cycle.take_back_to_sleep());
  cycle.fall_asleep();
  CHECK_FALSE(cycle.take_back_to_sleep());
  cycle.begin_waking();
  CHECK(cycle.take_back_to_sleep());
  CHECK_FALSE(cycle.take_back_to_sleep());
  cycle.fall_asleep();
  CHECK_FALSE(cycle.take_wake());
}

}  // namespace leasehold
