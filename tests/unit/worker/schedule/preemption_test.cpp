// A running sequence gives its blocks to others when the broker or the quota refuses more.
#include <catch2/catch.hpp>

#include "tests/support/block_conservation.hpp"
#include "tests/unit/worker/schedule/scheduler_fixture.hpp"

namespace leasehold::testing {
namespace {

/// A scheduler whose broker lends nothing more.
struct TightPool : SchedulerFixture {
  using SchedulerFixture::SchedulerFixture;

  /// Runs one tick and files its events.
  void step(TimePoint now = kNow) {
    deny_growth_requests();
    file(tick(now));
    check_block_conservation(scheduler);
  }
  void file(const std::vector<SchedulerEvent>& events) {
    for (const Token& token : only<Token>(events))
      REQUIRE(token.position == emitted[token.engine_request_id.value]++);
    for (const Completed& end : only<Completed>(events))
      REQUIRE(ends.emplace(end.engine_request_id.value, end).second);
    for (const Preempted& preempted : only<Preempted>(events)) {
      REQUIRE(preempted.emitted_tokens == emitted[preempted.engine_request_id.value]);
      preemptions.push_back(preempted);
    }
    REQUIRE(only<AdmissionRejected>(events).empty());
  }
  void step_until_preempted() {
    for (int i = 0; i < 300 && preemptions.empty(); ++i) step();
    REQUIRE(preemptions.size() == 1);
  }
  void finish() {
    for (int i = 0; i < 5'000 && scheduler.has_work(); ++i) step();
    REQUIRE_FALSE(scheduler.has_work());
  }
  std::string victim() const { return preemptions.at(0).engine_request_id.value; }
  bool is_complete(const std::string& id, std::uint32_t tokens) {
    return ends.contains(id) && ends.at(id).reason == CompletionReason::MaxTokensReached &&
           ends.at(id).emitted_tokens == tokens && emitted[id] == tokens;
  }
  std::vector<std::string> running() const {
    std::vector<std::string> ids;
    for (const auto& sequence : scheduler.running().all())
      ids.push_back(sequence->request.engine_request_id.value);
    return ids;
  }

  std::map<std::string, std::uint32_t> emitted;
  std::map<std::string, Completed> ends;
  std::vector<Preempted> preemptions;
};

/// Two requests in a pool that holds one of them. They lack a block in the same tick.
struct TwoInOnePool : TightPool {
  TwoInOnePool() {
    submit(request(lease_id, "older", 15, 20));
    submit(request(lease_id, "younger", 15, 20));
    step_until_preempted();
    REQUIRE(victim() == "younger");
  }
  LeaseId lease_id = lease(1, 4);
};

}  // namespace

TEST_CASE("preemption: after a denied growth one sequence waits, and then each token comes once") {
  TightPool pool;
  const LeaseId tight = pool.lease(1, 4);
  const LeaseId roomy = pool.lease(2, 20);
  pool.submit(pool.request(tight, "older", 14, 20));
  pool.submit(pool.request(roomy, "bystander", 14, 20));
  pool.step();
  pool.submit(pool.request(tight, "younger", 15, 20));
  pool.step_until_preempted();
  CHECK(pool.victim() == "younger");
  CHECK(pool.preemptions[0].cause == Errc::PoolExhausted);
  CHECK(pool.preemptions[0].freed_blocks == 2);
  const auto served = pool.tenancies().take_served();
  REQUIRE(served.size() == 2);
  CHECK(served[0].preemptions == 1);
  CHECK(served[1].preemptions == 0);
  CHECK(pool.row_count() == 2);  // the older one has a block in the same tick
  pool.finish();
  for (const char* id : {"older", "younger", "bystander"}) {
    CAPTURE(id);
    CHECK(pool.is_complete(id, 20));
  }
}

TEST_CASE("preemption: growth that is refused to a waiting request ends no running one") {
  TightPool pool;
  const LeaseId lease = pool.lease(1, 2);
  pool.submit(pool.request(lease, "runs", 15, 60));
  pool.file(pool.tick());
  pool.submit(pool.request(lease, "waits", 60, 3));
  pool.file(pool.tick());
  int refused = 0;
  for (int i = 0; i < 100 && !pool.ends.contains("runs"); ++i) {
    for (const GrowthRequest& growth : pool.tenancies().take_growth_requests()) {
      if (growth.blocks > 1) {
        pool.tenancies().deny_growth(growth);
        ++refused;
      } else {
        pool.grow(lease, 1);
      }
    }
    pool.file(pool.tick());
  }
  CHECK(refused > 0);
  CHECK(pool.preemptions.empty());
  CHECK(pool.is_complete("runs", 60));
}

TEST_CASE("preemption: rows that a request computes again are not charged again") {
  TwoInOnePool pool;
  while (!pool.ends.contains("older")) pool.step();
  pool.scheduler.admit(kNow);
  const StepPlan plan = pool.scheduler.plan();
  REQUIRE(plan.parts.size() == 1);
  CHECK(plan.parts[0].n_rows > 1);
  CHECK(plan.parts[0].sequence->prompt_rows(plan.parts[0].n_rows) == 0);
  pool.finish();
  CHECK(pool.is_complete("younger", 20));
}

TEST_CASE("preemption: the victim has the least work to repeat, and of equal ones it came last") {
  TightPool pool;
  const bool equal = GENERATE(false, true);
  const LeaseId lease = pool.lease(1, equal ? 7 : 9);
  pool.submit(pool.request(lease, "oldest", 31, 30));  // lacks a block first
  pool.submit(pool.request(lease, "short", 3, 30));
  pool.submit(pool.request(lease, "last", equal ? 3 : 33, 30));
  pool.step_until_preempted();
  CHECK(pool.victim() == (equal ? "last" : "short"));
  pool.finish();
  for (const char* id : {"oldest", "short", "last"}) CHECK(pool.is_complete(id, 30));
}

TEST_CASE("preemption: the oldest request is never the victim, however little it has") {
  TightPool pool;
  const LeaseId lease = pool.lease(1, 6);
  pool.submit(pool.request(lease, "oldest", 2, 50));
  pool.submit(pool.request(lease, "longer", 47, 10));  // lacks a block first
  pool.step_until_preempted();
  CHECK(pool.victim() == "longer");
  pool.finish();
  CHECK(pool.is_complete("oldest", 50));
  CHECK(pool.is_complete("longer", 10));
}

TEST_CASE("preemption: a quota moves a sequence of any lease of the tenant aside, of no other") {
  TightPool pool;
  const LeaseId one = pool.lease(1, 20);
  const LeaseId other = pool.lease_of({"t1"}, 9, 20);
  pool.submit(pool.request(pool.lease(2, 20), "bystander", 4, 40));
  pool.limit_blocks(5);
  pool.submit(pool.request(one, "older", 15, 30));
  PromptRequest younger = pool.request(one, "younger", 9, 30);
  younger.lease = other;
  pool.submit(younger);
  pool.step_until_preempted();
  CHECK(pool.victim() == "younger");
  CHECK(pool.preemptions[0].cause == Errc::QuotaBlocks);
  pool.finish();
  for (const char* id : {"older", "younger"}) CHECK(pool.is_complete(id, 30));
  CHECK(pool.is_complete("bystander", 40));
}

TEST_CASE("preemption: a request is admitted again before those that came later") {
  TwoInOnePool pool;
  pool.submit(pool.request(pool.lease_id, "later", 4, 3));
  while (!pool.ends.contains("older")) {
    pool.step();
    CHECK(pool.emitted["later"] == 0);
  }
  pool.step();
  REQUIRE_FALSE(pool.running().empty());
  CHECK(pool.running().front() == "younger");
  pool.finish();
  CHECK(pool.is_complete("younger", 20));
  CHECK(pool.is_complete("later", 3));
}

TEST_CASE("preemption: the full blocks of the victim save rows when they are still cached") {
  TightPool pool;
  const LeaseId lease = pool.lease(1, 8);
  pool.submit(pool.request(lease, "older", 15, 20));
  pool.submit(pool.request(lease, "younger", 78, 20));
  pool.step_until_preempted();
  REQUIRE(pool.victim() == "younger");
  while (pool.emitted["younger"] == pool.preemptions[0].emitted_tokens) pool.step();
  CHECK(pool.tenancies().prefix_counters().hits >= 4);
}

TEST_CASE("preemption: a waiting victim ends as any waiting request, with what it emitted") {
  TwoInOnePool pool;
  const std::uint32_t emitted = pool.preemptions[0].emitted_tokens;
  REQUIRE(emitted > 0);
  CompletionReason reason{};
  SECTION("cancelled") {
    REQUIRE(pool.scheduler.cancel(RequestId{"younger"}));
    reason = CompletionReason::Cancelled;
  }
  SECTION("revoked") {
    pool.revoke(pool.lease_id);
    reason = CompletionReason::Revoked;
  }
  SECTION("the engine failed") {
    pool.scheduler.end_all({Errc::MissingWeight, "blk.1"});
    reason = CompletionReason::EngineError;
  }
  pool.file(pool.scheduler.take_events());
  CHECK(pool.ends.at("younger").reason == reason);
  CHECK(pool.ends.at("younger").emitted_tokens == emitted);
  pool.finish();
  CHECK(pool.preemptions.size() == 1);
}

TEST_CASE("preemption: a waiting victim ends at its deadline") {
  TightPool pool;
  const LeaseId lease = pool.lease(1, 4);
  pool.submit(pool.request(lease, "older", 15, 20));
  PromptRequest younger = pool.request(lease, "younger", 15, 20);
  younger.deadline = kNow + Duration(5);
  pool.submit(younger);
  pool.step_until_preempted();
  REQUIRE(pool.victim() == "younger");
  pool.step(kNow + Duration(4));
  CHECK_FALSE(pool.ends.contains("younger"));
  pool.step(kNow + Duration(5));
  CHECK(pool.ends.at("younger").reason == CompletionReason::DeadlineExceeded);
}

TEST_CASE("preemption: a victim whose memory is reclaimed ends with OutOfBlocks") {
  TightPool pool;
  const LeaseId lease = pool.lease(1, 4);
  pool.submit(pool.request(lease, "older", 15, 20));
  pool.submit(pool.request(lease, "younger", 15, 20));
  SECTION("the broker reclaims the extent") {
    pool.step_until_preempted();
    REQUIRE(pool.scheduler.cancel(RequestId{"older"}));
    REQUIRE(pool.scheduler.blocks().remove_free_extents(lease, 1).size() == 1);
  }
  pool.finish();
  const bool reclaimed = pool.ends.at("older").reason == CompletionReason::Cancelled;
  CHECK((pool.ends.at("younger").reason == CompletionReason::EngineError) == reclaimed);
  if (reclaimed) CHECK(pool.ends.at("younger").error->code == Errc::OutOfBlocks);
}

TEST_CASE("preemption: a quota lowered while a victim waits does not end it") {
  TwoInOnePool pool;
  pool.limit_blocks(1);
  pool.finish();
  CHECK(pool.is_complete("older", 20));
  CHECK(pool.is_complete("younger", 20));
}

TEST_CASE("preemption: a rebind is reported once, however often it is preempted") {
  TightPool pool;
  const LeaseId lease = pool.lease(1, 4);
  pool.submit(pool.request(lease, "older", 15, 20));
  PromptRequest rebound = pool.request(lease, "rebound", 12, 20);
  rebound.emitted = {7, 8, 9};
  rebound.rebound_from = LeaseId{9, 1};
  pool.emitted["rebound"] = 3;
  pool.submit(rebound);
  int reports = 0;
  for (int i = 0; i < 300 && pool.scheduler.has_work(); ++i) {
    pool.deny_growth_requests();
    const auto events = pool.tick();
    reports += static_cast<int>(only<Rebound>(events).size());
    pool.file(events);
  }
  CHECK(pool.preemptions.size() == 1);
  CHECK(pool.is_complete("rebound", 20));
  CHECK(reports == 1);
}

TEST_CASE("preemption: requests that fit only one at a time all end, the oldest undisturbed") {
  TightPool pool({.max_batch_size = 8});
  const LeaseId lease = pool.lease(1, 7);
  for (int i = 0; i < 8; ++i)
    pool.submit(pool.request(lease, "r" + std::to_string(i), 3 + 2 * i % 5, 80));
  pool.finish();
  for (int i = 0; i < 8; ++i) CHECK(pool.is_complete("r" + std::to_string(i), 80));
  CHECK(pool.preemptions.size() > 3);
  for (const Preempted& preempted : pool.preemptions)
    CHECK(preempted.engine_request_id.value != "r0");
}

}  // namespace leasehold::testing
