// When a host looks at its parts again, and which tenants are due.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/tools/cell/decide/one_tenant.hpp"
#include "tools/cell/decide/due_tenants.hpp"
#include "tools/cell/decide/part_schedule.hpp"

using namespace leasehold;
using namespace leasehold::cell;
using namespace leasehold::cell::one_tenant;

namespace {

TimePoint at_ms(std::int64_t ms) {
  return TimePoint() + std::chrono::milliseconds(ms);
}

}  // namespace

TEST_CASE_METHOD(HostAlone,
                 "schedule: a host that has all is not due while its requests do not change") {
  TenantDemand demand;
  demand.seen(8, at_ms(0));
  PartSchedule schedule;
  schedule.stepped(a.part, false, at_ms(1), 7);
  CHECK_FALSE(schedule.due_at(demand));
  demand.seen(0, at_ms(2));
  CHECK(schedule.due_at(demand) == at_ms(2) + TenantDemand::kIdle);
}

TEST_CASE(
    "schedule: the hosts of a tenant look at it about once a second together, at first sooner") {
  Cell cell;
  Host a(cell, "a", 8), b(cell, "b", 8), c(cell, "c", 8), d(cell, "d", 8);
  for (Host* host : {&a, &b, &c, &d}) REQUIRE(host->run());
  d.part.look_again();
  REQUIRE(d.run());
  REQUIRE(d.part.parts() == 4);
  REQUIRE(d.part.is_short());
  PartSchedule schedule;
  int now = 0;
  for (const int pause : {125, 250, 500, 1'000, 2'000, 2'000}) {  // at first others may be joining
    schedule.stepped(d.part, false, at_ms(now), 0);
    CHECK(schedule.due_at({}) == at_ms(now + pause));
    CHECK_FALSE(schedule.begin_step(at_ms(now + pause - 1)));
    now += pause;
    CHECK(schedule.begin_step(at_ms(now)));
    CHECK_FALSE(schedule.due_at({}));
  }
}

TEST_CASE("schedule: between two hosts nothing waits, and among many each writes in its turn") {
  Cell cell;
  Host a(cell, "a", 8), b(cell, "b", 8);
  REQUIRE(a.run());
  REQUIRE(b.run());
  a.part.look_again();
  REQUIRE(a.run());
  PartSchedule schedule;
  schedule.wanted(a.part, at_ms(0));
  CHECK(schedule.due_at({}) == at_ms(0));

  Host c(cell, "c", 8), d(cell, "d", 8);
  int turn = 0;
  for (Host* host : {&c, &d, &a, &b, &c}) {
    host->part.look_again();
    REQUIRE(host->run());
  }
  for (const Host* host : {&a, &b, &c, &d}) {
    PartSchedule many;
    many.wanted(host->part, at_ms(0));
    CHECK(many.due_at({}) == at_ms(5 * turn++));
  }
}

TEST_CASE_METHOD(HostAlone,
                 "schedule: a host that many ask waits until they have asked, and not for ever") {
  PartSchedule schedule;
  schedule.wanted(a.part, at_ms(0));
  CHECK(schedule.begin_step(at_ms(0)));
  int now = 0;
  for (int others = 1; others < 4; ++others) {
    schedule.wanted(a.part, at_ms(now += 10));
    CHECK(schedule.due_at({}) == at_ms(now + 3 * others));
  }
  while (now < 2'000 && !schedule.begin_step(at_ms(now))) schedule.wanted(a.part, at_ms(now += 50));
  CHECK(now < 1'000);
  schedule.wanted(a.part, at_ms(now + 201));  // a new burst
  CHECK(schedule.due_at({}) == at_ms(now + 201));
}

TEST_CASE("schedule: after a refusal a host that gives some up lets the others write first") {
  Cell cell;
  Host a(cell, "a", 8), b(cell, "b", 8), c(cell, "c", 8);
  for (Host* host : {&a, &b, &c}) REQUIRE(host->run());
  a.part.look_again();
  const auto read = a.part.next_call();
  REQUIRE(read);
  REQUIRE(a.part.replied(cell.etcd.execute(*read)));
  a.apply();
  const auto write = a.next_write();
  REQUIRE(write);
  Host d(cell, "d", 8);
  REQUIRE(d.run());
  REQUIRE(a.part.replied(cell.etcd.execute(*write)));
  REQUIRE(a.part.refusals() == 1);
  PartSchedule schedule;
  schedule.stepped(a.part, false, at_ms(0), 0);
  const auto pause = schedule.due_at({});
  REQUIRE(pause);
  schedule.wanted(a.part, at_ms(1));
  CHECK(schedule.due_at({}) == pause);
}

TEST_CASE(
    "schedule: a text that moves here just after a refused request is followed after a pause") {
  PartSchedule schedule;
  CHECK(schedule.wants_more(false, after_ms(0)));
  CHECK_FALSE(schedule.wants_more(false, after_ms(1)));
  CHECK_FALSE(schedule.due_at({}));  // the host has just looked for more
  CHECK_FALSE(schedule.wants_more(true, after_ms(50)));
  CHECK(schedule.due_at({}) == after_ms(200));
  CHECK(schedule.begin_step(after_ms(200)));
  CHECK(schedule.wants_more(false, after_ms(200)));
}

TEST_CASE("schedule: pauses after refusals grow, and steps that failed are tried again") {
  Cell cell;
  Host a(cell, "a", 8);
  std::vector<std::unique_ptr<Host>> others;
  TimePoint longest = at_ms(0);
  for (int i = 0; i < 3; ++i) {
    a.part.look_again();
    const auto write = a.next_write();
    REQUIRE(write);
    others.push_back(std::make_unique<Host>(cell, "b" + std::to_string(i), 8));
    REQUIRE(others.back()->run());
    REQUIRE(a.part.replied(cell.etcd.execute(*write)));
    PartSchedule schedule;
    schedule.stepped(a.part, false, at_ms(0), 249'999'999);
    const auto due = schedule.due_at({});
    REQUIRE(due);
    CHECK(*due > longest);
    longest = *due;
  }
  CHECK(longest < at_ms(250));
  PartSchedule schedule;
  schedule.stepped(a.part, true, at_ms(0), 249'999'999);
  CHECK(schedule.due_at({}) == at_ms(0) + PartSchedule::kRetry);
}

TEST_CASE("due: of a hundred thousand tenants only those that are due are stepped") {
  DueTenants due;
  constexpr int kTenants = 100'000;
  for (int i = 0; i < kTenants; ++i)
    due.set(TenantId{std::to_string(i)}, i % 1'000 == 0 ? std::optional(at_ms(i)) : std::nullopt);
  std::size_t steps = 0;
  for (int ms = 0; ms < 10'000; ms += 200) steps += due.take(at_ms(ms)).size();
  CHECK(steps == 10);
  CHECK(due.next() == at_ms(10'000));
  due.set(TenantId{"10000"}, at_ms(50'500));
  CHECK(due.next() == at_ms(11'000));
  CHECK(due.take(at_ms(kTenants)).size() == 90);
  CHECK_FALSE(due.next());
}
