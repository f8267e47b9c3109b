// The order in which the requests of one tenant are admitted.
#include <catch2/catch.hpp>

#include "tests/unit/worker/schedule/scheduler_fixture.hpp"

namespace leasehold::testing {
namespace {

struct Asked {
  std::string name;
  std::int32_t priority = 0;
  std::optional<Duration> deadline = {};
};

/// One request runs at a time; each emits two tokens.
struct OneAtATime : SchedulerFixture {
  OneAtATime() : SchedulerFixture({.max_batch_size = 1}) {}

  void submit(LeaseId lease, const Asked& asked) {
    PromptRequest next = request(lease, asked.name, 4, 2);
    next.tenant = scheduler.tenancies().at(lease).tenant;
    next.priority = asked.priority;
    if (asked.deadline) next.deadline = kNow + *asked.deadline;
    SchedulerFixture::submit(std::move(next));
  }
  /// The names in the order of admission, until nothing waits.
  std::vector<std::string> admissions() {
    std::vector<std::string> names;
    while (scheduler.has_work()) {
      for (const Token& token : only<Token>(tick()))
        if (token.position == 0) names.push_back(token.engine_request_id.value);
    }
    return names;
  }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("priority: a higher one is admitted first, then an earlier deadline, then arrival") {
  OneAtATime fixture;
  const LeaseId lease = fixture.lease(1, 40);
  for (const Asked& asked : {Asked{"usual"},
                             {"low", -10, Duration(5)},
                             {"later", 0, Duration(90)},
                             {"soon", 0, Duration(80)},
                             {"high", 10},
                             {"last"},
                             {"above", 1}})
    fixture.submit(lease, asked);
  CHECK(fixture.admissions() == Names{"high", "above", "soon", "later", "usual", "last", "low"});
}

TEST_CASE("priority: it orders the requests of all leases of a tenant; equal ones have turns") {
  OneAtATime fixture;
  const LeaseId one = fixture.lease(1, 40);
  const LeaseId other = fixture.lease_of({"t1"}, 9, 40);
  for (const char* name : {"a1", "a2", "a3"}) fixture.submit(one, {name});
  for (const char* name : {"b1", "b2"}) fixture.submit(other, {name});
  fixture.submit(other, {"high", 2});
  fixture.submit(one, {"higher", 3});
  CHECK(fixture.admissions() == Names{"higher", "high", "a1", "b1", "a2", "b2", "a3"});
}

TEST_CASE("priority: it buys nothing from another tenant") {
  std::vector<Names> orders;
  for (const std::int32_t priority : {0, 10}) {
    OneAtATime fixture;
    const LeaseId greedy = fixture.lease(1, 40);
    const LeaseId modest = fixture.lease(2, 40);
    for (const char* name : {"m1", "m2", "m3"}) fixture.submit(modest, {name, -10});
    for (const char* name : {"g1", "g2", "g3"}) fixture.submit(greedy, {name, priority});
    orders.push_back(fixture.admissions());
  }
  CHECK(orders[0] == Names{"g1", "m1", "g2", "m2", "g3", "m3"});
  CHECK(orders[1] == orders[0]);
}

TEST_CASE("priority: a waiting request moves no running one aside") {
  OneAtATime fixture;
  const LeaseId lease = fixture.lease(1, 40);
  fixture.submit(lease, {"low", -10});
  fixture.tick();
  fixture.submit(lease, {"high", 10});
  CHECK(only<Token>(fixture.tick()).at(0).engine_request_id.value == "low");
  CHECK(fixture.admissions() == Names{"high"});
}

TEST_CASE("priority: out of blocks, the lowest is the victim, also when it is the oldest") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 9);
  PromptRequest low = fixture.request(lease, "low", 47, 30);  // the most work to repeat
  low.priority = -1;
  fixture.submit(low);
  for (const char* name : {"usual", "other"}) fixture.submit(lease, name, 2, 30);
  std::vector<Preempted> preempted;
  for (int i = 0; i < 60 && preempted.empty(); ++i) {
    fixture.deny_growth_requests();
    preempted = only<Preempted>(fixture.tick());
  }
  REQUIRE(preempted.size() == 1);
  CHECK(preempted[0].engine_request_id.value == "low");
}

TEST_CASE("priority: a preempted request comes before its equals, and after a higher one") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 4);
  for (const char* name : {"older", "younger"}) fixture.submit(lease, name, 15, 20);
  PromptRequest later = fixture.request(lease, "later", 4, 2);
  later.deadline = kNow + Duration(100);
  Names ended;
  for (int i = 0; i < 300 && fixture.scheduler.has_work(); ++i) {
    fixture.deny_growth_requests();
    const auto events = fixture.tick();
    if (!only<Preempted>(events).empty()) {
      fixture.submit(later);
      PromptRequest high = fixture.request(lease, "high", 17, 2);
      high.priority = 1;
      fixture.submit(high);
    }
    for (const Completed& end : only<Completed>(events))
      ended.push_back(end.engine_request_id.value);
  }
  CHECK(ended == Names{"older", "high", "younger", "later"});
}

TEST_CASE("priority: what lacks quota is not overtaken by a smaller request of its tenant") {
  SchedulerFixture fixture;
  const LeaseId one = fixture.lease(1, 40);
  const LeaseId other = fixture.lease_of({"t1"}, 9, 40);
  fixture.limit_blocks(6);
  fixture.submit(one, "running", 30, 2);
  fixture.tick();
  PromptRequest large = fixture.request(one, "large", 60, 2);
  large.priority = 1;
  fixture.submit(large);
  PromptRequest small = fixture.request(one, "small", 4, 2);
  small.lease = other;
  fixture.submit(small);
  std::vector<std::string> order;
  while (fixture.scheduler.has_work()) {
    for (const Token& token : only<Token>(fixture.tick()))
      if (token.position == 0) order.push_back(token.engine_request_id.value);
  }
  CHECK(order == Names{"large", "small"});
}

TEST_CASE("priority: what lacks blocks of its lease does not hold up the tenant's other leases") {
  SchedulerFixture fixture;
  const LeaseId full = fixture.lease(1, 3);
  const LeaseId other = fixture.lease_of({"t1"}, 9, 40);
  PromptRequest high = fixture.request(full, "high", 60, 2);
  high.priority = 10;
  fixture.submit(high);
  PromptRequest low = fixture.request(full, "low", 4, 2);
  low.lease = other;
  fixture.submit(low);
  CHECK(only<Token>(fixture.tick()).at(0).engine_request_id.value == "low");
}

}  // namespace leasehold::testing
