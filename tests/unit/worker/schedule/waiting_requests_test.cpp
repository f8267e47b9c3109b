// The queues of leases: their order, deadlines and ends, without a scheduler.
#include "worker/schedule/waiting_requests.hpp"

#include "tests/unit/worker/schedule/parts_fixture.hpp"

namespace leasehold::testing {
namespace {

struct Queue : PartsFixture {
  Publications publications{limits, tenancies};
  Transfers transfers{running};
  SwapPlanner swap{limits, tenancies, running, kv, transfers};
  PendingEvents events;
  WaitingRequests waiting{limits, tenancies, publications, swap, events};
  Tenancy& tenancy = lease(1, 4);

  void add(const std::string& name, std::optional<TimePoint> deadline = {}) {
    PromptRequest added = request(tenancy, name, 4);
    added.deadline = deadline;
    added.rate_charge.unused_tokens = 7;
    added.rate_charge.owners = {{tenancy.tenant, {}}};
    waiting.add(std::move(added));
  }
  std::string order() const {
    std::string names;
    for (const PromptRequest& each : tenancy.waiting) names += each.engine_request_id.value;
    return names;
  }
};

}  // namespace

TEST_CASE("waiting requests: a preempted request goes before others of the same priority") {
  Queue test;
  test.add("a");
  test.add("b");
  PromptRequest preempted = test.request(test.tenancy, "p", 4);
  preempted.block_limit = 100;
  test.waiting.insert(std::move(preempted));
  CHECK(test.order() == "pab");
  CHECK(test.waiting.contains({"b"}));
  CHECK_FALSE(test.waiting.contains({"c"}));
}

TEST_CASE("waiting requests: those whose deadline has passed end, and give back their tokens") {
  Queue test;
  test.add("late", TimePoint(10));
  test.add("later", TimePoint(20));
  test.add("never");
  test.waiting.drop_expired(TimePoint(9));
  CHECK(test.events.take().empty());
  test.waiting.drop_expired(TimePoint(10));
  const std::vector<SchedulerEvent> events = test.events.take();
  REQUIRE(events.size() == 1);
  const auto& end = std::get<Completed>(events[0]);
  CHECK(end.engine_request_id == RequestId{"late"});
  CHECK(end.reason == CompletionReason::DeadlineExceeded);
  CHECK(test.order() == "laternever");
  CHECK(test.tenancies.take_returned()[{test.tenancy.tenant, {}}].unused_tokens == 7);
  test.waiting.drop_expired(TimePoint(20));
  CHECK(test.order() == "never");
}

TEST_CASE("waiting requests: a new request is rejected, and a preempted one ends") {
  Queue test;
  test.add("new");
  test.waiting.reject_first(test.tenancy, {Errc::PoolExhausted, "no block"});
  PromptRequest preempted = test.request(test.tenancy, "preempted", 4);
  preempted.block_limit = 100;
  test.waiting.insert(std::move(preempted));
  test.waiting.reject_first(test.tenancy, {Errc::PoolExhausted, "no block"});
  const std::vector<SchedulerEvent> events = test.events.take();
  REQUIRE(events.size() == 2);
  CHECK(std::get<Completed>(events[0]).error->code == Errc::OutOfBlocks);
  CHECK(std::get<AdmissionRejected>(events[1]).reason.code == Errc::PoolExhausted);
  CHECK(test.order().empty());
}

TEST_CASE("waiting requests: a lease's full queue refuses one more request") {
  Queue test;
  test.limits.max_waiting_per_lease = 2;
  test.add("a");
  CHECK(test.waiting.check_room(test.tenancy));
  test.add("b");
  const auto full = test.waiting.check_room(test.tenancy);
  REQUIRE_FALSE(full);
  CHECK(full.error().code == Errc::QuotaConcurrent);
  CHECK(test.waiting.end({"a"}, {.reason = CompletionReason::Cancelled}));
  CHECK_FALSE(test.waiting.end({"a"}, {.reason = CompletionReason::Cancelled}));
  CHECK(test.waiting.check_room(test.tenancy));
}

}  // namespace leasehold::testing
