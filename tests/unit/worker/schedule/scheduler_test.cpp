#include "worker/schedule/scheduler.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/unit/worker/schedule/scheduler_fixture.hpp"

namespace leasehold::testing {
namespace {

Errc refused(SchedulerFixture& fixture, const PromptRequest& request) {
  const Result<void> submitted = fixture.scheduler.submit(request);
  REQUIRE_FALSE(submitted.has_value());
  REQUIRE_FALSE(submitted.error().detail.empty());
  return submitted.error().code;
}

std::vector<std::string> kinds(const std::vector<SchedulerEvent>& events) {
  constexpr const char* kNames[] = {"completed", "rejected", "rebound",
                                    "preempted", "logprobs", "token"};
  std::vector<std::string> names;
  for (const SchedulerEvent& event : events) names.emplace_back(kNames[event.index()]);
  return names;
}

/// The order in which two leases' requests of one token each are admitted within `ticks` ticks.
std::vector<std::string> admissions(std::uint32_t batch_size, std::vector<std::string> of_first,
                                    std::vector<std::string> of_second, int ticks) {
  SchedulerFixture fixture({.max_batch_size = batch_size});
  const LeaseId first = fixture.lease(1, 50);
  const LeaseId second = fixture.lease(2, 50);
  for (const std::string& id : of_first) fixture.submit(first, id, 4, 1);
  for (const std::string& id : of_second) fixture.submit(second, id, 4, 1);
  std::vector<std::string> order;
  for (int tick = 0; tick < ticks; ++tick) {
    for (const Token& token : only<Token>(fixture.tick()))
      order.push_back(token.engine_request_id.value);
  }
  return order;
}

}  // namespace

TEST_CASE("scheduler: every refusal of a submit has its own code") {
  SchedulerFixture fixture({.max_waiting_per_lease = 2, .max_waiting = 3});
  const LeaseId lease = fixture.lease(1, 8);
  const LeaseId other = fixture.lease(2, 8);
  const PromptRequest good = fixture.request(lease, "r");

  const auto refused_with = [&](auto spoil) {
    PromptRequest bad = good;
    spoil(bad);
    return refused(fixture, bad);
  };
  REQUIRE(refused_with([](auto& bad) { bad.lease = {9, 1}; }) == Errc::LeaseFenced);
  REQUIRE(refused_with([](auto& bad) { bad.tenant = {"t2"}; }) == Errc::UnknownTenant);
  REQUIRE(refused_with([](auto& bad) { bad.prompt.clear(); }) == Errc::BadRequest);
  // more than max_emitted_tokens
  REQUIRE(refused_with([](auto& bad) { bad.emitted = {1, 2, 3, 4}; }) == Errc::BadRequest);
  for (const float value : {-1.0f, NAN, INFINITY})
    REQUIRE(refused_with([&](auto& bad) { bad.sampling.temperature = value; }) == Errc::BadRequest);
  REQUIRE(refused(fixture, fixture.request(lease, "r", 256)) == Errc::PromptTooLong);
  PromptRequest bad = fixture.request(lease, "r", 254);
  bad.emitted = {1, 2, 3};
  REQUIRE(refused(fixture, bad) == Errc::PromptTooLong);

  fixture.submit(good);
  REQUIRE(refused(fixture, good) == Errc::BadRequest);  // its id is in use
  fixture.submit(lease, "s");
  REQUIRE(refused(fixture, fixture.request(lease, "u")) == Errc::QuotaConcurrent);
  fixture.submit(other, "v");
  REQUIRE(refused(fixture, fixture.request(other, "w")) == Errc::QueueFull);
}

TEST_CASE("scheduler: by default 256 requests of one lease wait, and one more is refused") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 8);
  for (int i = 0; i < 256; ++i) fixture.submit(lease, "r" + std::to_string(i));
  CHECK(refused(fixture, fixture.request(lease, "s")) == Errc::QuotaConcurrent);
}

TEST_CASE("scheduler: a tenant with many leases fills its share of the queue, not the queue") {
  SchedulerFixture fixture({.max_waiting_per_lease = 6, .max_waiting = 40});
  const TenantId greedy{"t1"};
  std::vector<LeaseId> leases{fixture.lease(1, 8)};
  for (std::uint32_t slot = 2; slot <= 10; ++slot)
    leases.push_back(fixture.lease_of(greedy, slot, 8));
  int admitted = 0;
  for (const LeaseId lease : leases) {
    for (int i = 0; i < 6; ++i) {
      PromptRequest request =
          fixture.request(lease, to_string(lease) + "/" + std::to_string(i), 4, 1);
      request.tenant = greedy;
      const auto submitted = fixture.scheduler.submit(std::move(request));
      if (submitted) ++admitted;
      if (!submitted) REQUIRE(submitted.error().code == Errc::QueueFull);
    }
  }
  CHECK(admitted == 20);
  const LeaseId other = fixture.lease(40, 8);
  for (int i = 0; i < 6; ++i)
    CHECK(fixture.scheduler.submit(fixture.request(other, std::to_string(i), 4, 1)));
}

TEST_CASE(
    "scheduler: submit refuses a request above the tenant's quota and takes one at its limit") {
  SchedulerFixture fixture;
  const LeaseId lease{1, 1};
  fixture.tenancies().add({.lease = lease, .tenant = TenantId{"t1"}});
  fixture.limit_blocks(3, {"t1"}, 1);
  REQUIRE(refused(fixture, fixture.request(lease, "r", 30, 3)) ==
          Errc::QuotaBlocks);  // 3 blocks and a record
  fixture.submit(lease, "r", 29, 3);
}

TEST_CASE("scheduler: decode rows come first and prompts get the rest of the budget") {
  SchedulerFixture fixture({.token_budget = 8});
  const LeaseId lease = fixture.lease(1, 20);
  fixture.submit(lease, "long", 20, 3);
  fixture.tick();
  REQUIRE(fixture.row_count() == 8);
  REQUIRE_FALSE(fixture.plan.parts[0].wants_token);
  fixture.submit(lease, "short", 2, 9);
  fixture.tick();
  REQUIRE(fixture.plan.parts.size() == 1);  // the first prompt uses the whole budget
  fixture.tick();
  REQUIRE(fixture.plan.parts[0].n_rows == 4);
  REQUIRE(fixture.plan.parts[0].wants_token);
  REQUIRE(fixture.plan.parts[1].n_rows == 2);
  fixture.tick();
  REQUIRE(fixture.row_count() == 2);
}

TEST_CASE("scheduler: a request's last token precedes its completion, and other tokens follow") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 20);
  fixture.submit(lease, "longer", 4, 5);
  fixture.submit(lease, "shorter", 4, 2);
  REQUIRE(kinds(fixture.tick()) == std::vector<std::string>{"token", "token"});
  const std::vector<SchedulerEvent> events = fixture.tick();
  REQUIRE(kinds(events) == std::vector<std::string>{"token", "completed", "token"});
  REQUIRE(std::get<Token>(events[0]).engine_request_id.value == "shorter");
  REQUIRE(std::get<Token>(events[0]).position == 1);
  REQUIRE(std::get<Completed>(events[1]).reason == CompletionReason::MaxTokensReached);
  REQUIRE(std::get<Completed>(events[1]).emitted_tokens == 2);
  REQUIRE(std::get<Token>(events[2]).engine_request_id.value == "longer");
}

TEST_CASE("scheduler: the last row of a sequence waits for its mask and delays no other") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 20);
  fixture.submit(lease, "masked", 4);
  fixture.submit(lease, "other", 4, 9);
  fixture.scheduler.admit(kNow);
  Sequence& masked = *fixture.running().front();
  masked.awaits_mask = true;

  REQUIRE(only<Token>(fixture.tick()).size() == 1);
  REQUIRE(fixture.row_count() == 3 + 4);
  REQUIRE_FALSE(fixture.plan.parts.front().wants_token);
  REQUIRE(only<Token>(fixture.tick()).size() == 1);
  REQUIRE(fixture.row_count() == 1);
  masked.awaits_mask = false;
  const auto tokens = only<Token>(fixture.tick());
  REQUIRE(tokens.size() == 2);
  REQUIRE(tokens.front().position == 0);
  REQUIRE(fixture.row_count() == 2);
}

TEST_CASE("scheduler: the drawn token says whether it belongs to the text it ends") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 20);
  fixture.submit(lease, "r");
  fixture.submit(lease, "s");
  fixture.scheduler.admit(kNow);
  const StepPlan plan = fixture.scheduler.plan();
  fixture.scheduler.commit(
      plan.parts[0], {{.sampled = {2}, .is_text = false, .ends = CompletionReason::EndOfSequence}});
  fixture.scheduler.commit(plan.parts[1],
                           {{.sampled = {2}, .ends = CompletionReason::StopSequence}});
  const auto events = fixture.scheduler.take_events();
  const auto ends = only<Completed>(events);
  REQUIRE(ends.size() == 2);
  REQUIRE(ends[0].reason == CompletionReason::EndOfSequence);
  REQUIRE(ends[0].emitted_tokens == 0);
  REQUIRE(ends[1].reason == CompletionReason::StopSequence);
  REQUIRE(ends[1].emitted_tokens == 1);
  REQUIRE(only<Token>(events).size() == 1);
  REQUIRE(only<Token>(events)[0].engine_request_id.value == "s");
}

TEST_CASE("scheduler: a text that the context cuts off does not end as asked") {
  SchedulerFixture fixture({.max_context = 16});
  const LeaseId lease = fixture.lease(1, 20);
  fixture.submit(lease, "r", 14, 50);
  fixture.tick();
  const auto end = single<Completed>(fixture.tick());
  REQUIRE(end.reason == CompletionReason::ContextFull);
  REQUIRE(end.emitted_tokens == 2);
}

TEST_CASE("scheduler: admission is round robin among leases below their quota") {
  REQUIRE(admissions(4, {"a0", "a1", "a2", "a3"}, {"b0", "b1", "b2"}, 2) ==
          std::vector<std::string>{"a0", "b0", "a1", "b1", "a2", "b2", "a3"});
}

TEST_CASE("scheduler: with a batch of one, no lease waits for another lease's whole queue") {
  REQUIRE(admissions(1, {"a0", "a1", "a2"}, {"b0", "b1"}, 5) ==
          std::vector<std::string>{"a0", "b0", "a1", "b1", "a2"});
}

TEST_CASE("scheduler: a sequence without a block waits for the broker and then continues") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 2);  // a record and sixteen positions
  fixture.submit(lease, "r", 15, 10);
  fixture.tick();
  REQUIRE(fixture.tenancies().take_growth_requests().size() == 1);  // before the block is needed
  fixture.tick();
  REQUIRE(fixture.tick().empty());
  REQUIRE(fixture.plan.parts.empty());
  const auto growth_requests = fixture.tenancies().take_growth_requests();
  REQUIRE(growth_requests.size() == 1);
  REQUIRE(growth_requests[0].lease == lease);
  REQUIRE(growth_requests[0].blocks >= 1);
  fixture.grow(lease, 4);
  REQUIRE(only<Token>(fixture.tick()).size() == 1);
}

TEST_CASE("scheduler: a waiting prompt that cannot fit is rejected after a denied growth") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 2);
  fixture.submit(lease, "big", 60, 3);
  fixture.submit(lease, "small", 4, 3);
  REQUIRE(fixture.tick().empty());
  const auto asked = fixture.tenancies().take_growth_requests();
  REQUIRE(asked.at(0).blocks == 3);
  fixture.tenancies().deny_growth(asked[0]);
  const auto rejected = single<AdmissionRejected>(fixture.tick());
  REQUIRE(rejected.engine_request_id.value == "big");
  REQUIRE(rejected.reason.code == Errc::PoolExhausted);
  REQUIRE(only<Token>(fixture.tick()).size() == 1);
}

TEST_CASE("scheduler: growth refused for the tenant's limit is not an empty pool") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 2);
  fixture.submit(lease, "waits", 60, 3);
  REQUIRE(fixture.tick().empty());
  fixture.tenancies().deny_growth(fixture.tenancies().take_growth_requests().at(0),
                                  Errc::QuotaBlocks);
  const auto rejected = single<AdmissionRejected>(fixture.tick());
  CHECK(rejected.reason.code == Errc::QuotaBlocks);
  CHECK(rejected.reason.detail.contains("raise --max-blocks"));

  fixture.submit(lease, "runs", 4, 60);
  std::vector<Completed> ends;
  for (int tick = 0; tick < 60 && ends.empty(); ++tick) {
    fixture.tenancies().deny_growth({lease, 1}, Errc::QuotaBlocks);
    ends = only<Completed>(fixture.tick());
  }
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].error->code == Errc::OutOfBlocks);
  CHECK(ends[0].error->detail.contains("raise --max-blocks"));
}

TEST_CASE("scheduler: a rejected rebind reports its lease and the tokens emitted before") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 2);
  PromptRequest rebind = fixture.request(lease, "r", 60, 9);
  rebind.emitted = {5, 6, 7};
  rebind.rebound_from = LeaseId{9, 1};
  fixture.submit(rebind);
  SECTION("because the broker lends no more") {
    REQUIRE(fixture.tick().empty());
    fixture.tenancies().deny_growth(fixture.tenancies().take_growth_requests().at(0));
  }
  SECTION("because the quota was lowered") {
    fixture.limit_blocks(2);
  }
  const auto rejected = single<AdmissionRejected>(fixture.tick());
  REQUIRE(rejected.lease == lease);
  REQUIRE(rejected.emitted_tokens == 3);
}

TEST_CASE("scheduler: a lowered quota ends no request that was admitted before") {
  SchedulerFixture fixture;
  const LeaseId lease = fixture.lease(1, 5);
  fixture.submit(lease, "early", 20, 60);
  REQUIRE(only<Token>(fixture.tick()).size() == 1);
  fixture.limit_blocks(5);
  fixture.submit(lease, "late", 4, 40);
  std::vector<Preempted> preempted;
  for (int tick = 0; tick < 40 && preempted.empty(); ++tick)
    preempted = only<Preempted>(fixture.tick());
  REQUIRE(preempted.size() == 1);
  CHECK(preempted[0].engine_request_id.value == "late");
  REQUIRE(fixture.running().size() == 1);
  CHECK(fixture.running()[0]->request.engine_request_id.value == "early");
}

TEST_CASE("scheduler: OutOfBlocks says whether the quota or the broker is the reason") {
  SchedulerFixture fixture;
  const bool quota = GENERATE(true, false);
  const LeaseId lease = fixture.lease(1, quota ? 20 : 4);
  fixture.submit(lease, "first", 4, quota ? 3 : 1);
  fixture.tick();
  fixture.submit(lease, "alone", 30, 60);
  if (quota)  // beside another request it is admitted with the blocks that it needs first
    fixture.limit_blocks(5, {"t1"}, 2);
  std::vector<Completed> ends;
  for (int tick = 0; tick < 60 && ends.empty(); ++tick) {
    if (!quota) fixture.tenancies().deny_growth({lease, 1});
    ends = only<Completed>(fixture.tick());
    std::erase_if(ends,
                  [](const Completed& end) { return end.engine_request_id.value == "first"; });
  }
  REQUIRE(ends.size() == 1);
  REQUIRE(ends[0].error->code == Errc::OutOfBlocks);
  const std::string& detail = ends[0].error->detail;
  CHECK((detail.find("tenant t1 may hold 5") != detail.npos) == quota);
  CHECK((detail.find("the broker lends no more") != detail.npos) == !quota);
}

TEST_CASE(
    "scheduler: cancel ends a waiting or running request, and any other id is UnknownRequest") {
  SchedulerFixture fixture({.max_batch_size = 1});
  const LeaseId lease = fixture.lease(1, 20);
  fixture.submit(lease, "running");
  fixture.submit(lease, "waiting");
  fixture.tick();
  for (const char* id : {"waiting", "running"}) {
    REQUIRE(fixture.scheduler.cancel(RequestId{id}));
    const auto end = single<Completed>(fixture.scheduler.take_events());
    REQUIRE(end.engine_request_id.value == id);
    REQUIRE(end.reason == CompletionReason::Cancelled);
  }
  REQUIRE(fixture.scheduler.cancel(RequestId{"running"}).error().code == Errc::UnknownRequest);
  REQUIRE_FALSE(fixture.scheduler.has_work());
  REQUIRE(fixture.tenancies().at(lease).pool.held_blocks() == 0);
}

TEST_CASE("scheduler: a waiting request ends at its deadline, not before") {
  SchedulerFixture fixture({.max_batch_size = 1});
  const LeaseId lease = fixture.lease(1, 20);
  fixture.submit(lease, "running", 4, 50);
  fixture.tick();
  PromptRequest late = fixture.request(lease, "late");
  late.deadline = kNow + Duration(5);
  late.emitted = {1};
  fixture.submit(late);
  REQUIRE(only<Completed>(fixture.tick(kNow + Duration(4))).empty());
  const auto end = single<Completed>(fixture.tick(kNow + Duration(5)));
  REQUIRE(end.reason == CompletionReason::DeadlineExceeded);
  REQUIRE(end.emitted_tokens == 1);  // partial output is kept
}

TEST_CASE("scheduler: ending a lease ends its running and waiting requests, and no others") {
  SchedulerFixture fixture({.max_batch_size = 2});
  const LeaseId dead = fixture.lease(1, 20, 1);
  const LeaseId other = fixture.lease(2, 20);
  for (const char* id : {"running", "waiting"}) {
    fixture.submit(dead, id);
  }
  fixture.submit(other, "bystander");
  fixture.tick();
  fixture.scheduler.end_lease(
      dead, {.reason = CompletionReason::Revoked,
             .revocation = RevocationInfo{.lease = dead, .reason = RevokeReason::Released}});
  const auto ends = only<Completed>(fixture.scheduler.take_events());
  REQUIRE(ends.size() == 2);
  for (const Completed& end : ends) {
    REQUIRE(end.reason == CompletionReason::Revoked);
    REQUIRE(end.revocation->lease == dead);
    REQUIRE(end.revocation->reason == RevokeReason::Released);
  }
  REQUIRE_FALSE(fixture.tenancies().contains(dead));
  REQUIRE(only<Token>(fixture.tick()).size() == 1);
}

}  // namespace leasehold::testing
