// A preempted sequence whose blocks are moved to swap and back computes no row again.
#include <catch2/catch.hpp>

#include "tests/unit/worker/schedule/swap_pair.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint64_t kCostlyBlock = 1 << 20;

}  // namespace

TEST_CASE("swap: the blocks of a victim go to swap and come back, and no row is computed again") {
  SwapPair pair;
  pair.step_until_preempted();
  CHECK(pair.preemptions[0].swapped_blocks == 2);
  CHECK(pair.preemptions[0].freed_blocks == 3);  // and its record
  CHECK(pair.is_swapped());
  CHECK(pair.copied_blocks == 2);
  pair.finish();
  CHECK(pair.copied_blocks == 3);   // its first block was still cached
  CHECK(pair.rows["older"] == 49);  // the last token is not computed
  CHECK(pair.rows["younger"] == 49);
  CHECK(pair.is_all_free());
}

TEST_CASE("swap: a sequence is dropped when its rows cost less than its copies") {
  SwapPair pair(4, kCostlyBlock);
  pair.step_until_preempted();
  CHECK(pair.preemptions[0].swapped_blocks == 0);
  CHECK_FALSE(pair.is_swapped());
  pair.finish();
  CHECK(pair.copied_blocks == 0);
  CHECK(pair.rows["younger"] > 49);
}

TEST_CASE("swap: a victim runs on until the broker has answered about room in swap") {
  SwapPair pair(0);
  for (int i = 0; i < 60; ++i) pair.step();
  CHECK(pair.preemptions.empty());
  CHECK(pair.scheduler.running().size() == 2);
  REQUIRE(pair.swap_wanted);
  CHECK(pair.swap_wanted->lease == pair.lease_id);
  CHECK(pair.swap_wanted->blocks == 2);

  const bool granted = GENERATE(true, false);
  if (granted) {
    pair.grow_swap(pair.lease_id, 2);
  } else {
    pair.tenancies().deny_growth(*pair.swap_wanted);
  }
  pair.step();
  REQUIRE(pair.preemptions.size() == 1);
  CHECK(pair.preemptions[0].swapped_blocks == (granted ? 2 : 0));
  pair.finish();
  CHECK((pair.rows["younger"] == 49) == granted);
}

TEST_CASE("swap: after a refusal victims are dropped at once, and swap is asked for meanwhile") {
  SwapPair pair(0);
  pair.tenancies().deny_growth({pair.lease_id, 1, wire::MemoryPool::Swap});
  pair.step_until_preempted();
  CHECK(pair.preemptions[0].swapped_blocks == 0);
  pair.step();
  CHECK(pair.swap_wanted);
  pair.finish();
}

TEST_CASE("swap: a refused swap is not a refusal of KV blocks") {
  SwapFixture fixture;
  const LeaseId lease = fixture.lease(1, 1);
  fixture.submit(lease, "r", 20, 5);
  fixture.swap_tick();
  (void)fixture.tenancies().take_growth_requests();
  fixture.tenancies().deny_growth({lease, 1, wire::MemoryPool::Swap});
  CHECK(fixture.swap_tick().empty());
  CHECK(fixture.tenancies().waiting_count() == 1);
}

TEST_CASE("swap: a swapped request that ends gives back the blocks of both pools") {
  SwapPair pair;
  pair.step_until_preempted();
  REQUIRE(pair.is_swapped());
  REQUIRE(pair.tenancy().swap.held_blocks() == 2);
  CompletionReason reason{};
  SECTION("cancelled") {
    REQUIRE(pair.scheduler.cancel(RequestId{"younger"}));
    reason = CompletionReason::Cancelled;
  }
  SECTION("ended by the engine") {
    const auto& sequence = pair.tenancy().swapped.at(RequestId{"younger"});
    pair.scheduler.end_sequence(*sequence, {.reason = CompletionReason::DeadlineExceeded});
    reason = CompletionReason::DeadlineExceeded;
  }
  SECTION("the engine failed") {
    pair.scheduler.end_all({Errc::MissingWeight, "blk.1"});
    reason = CompletionReason::EngineError;
  }
  pair.file(pair.scheduler.take_events());
  CHECK(pair.ends.at("younger").reason == reason);
  CHECK(pair.ends.at("younger").emitted_tokens == pair.preemptions[0].emitted_tokens);
  CHECK(pair.tenancy().swap.held_blocks() == 0);
  for (int i = 0; i < 100 && pair.scheduler.has_work(); ++i) pair.step();
  CHECK(pair.is_all_free());
  CHECK(pair.scheduler.blocks()
            .remove_free_extents(pair.lease_id, 9, wire::MemoryPool::Swap)
            .size() == 1);
}

TEST_CASE("swap: a swapped request ends at its deadline, and with its lease") {
  SwapFixture fixture;
  const LeaseId lease = fixture.lease(1, 6);
  fixture.grow_swap(lease, 4);
  fixture.submit(lease, "older", 20, 30);
  PromptRequest younger = fixture.request(lease, "younger", 20, 30);
  younger.deadline = kNow + Duration(5);
  fixture.submit(younger);
  while (fixture.tenancies().at(lease).swapped.empty()) {
    fixture.deny_growth_requests();
    (void)fixture.swap_tick();
  }
  (void)fixture.scheduler.take_kv_changes();
  const bool with_lease = GENERATE(true, false);
  if (with_lease) {
    fixture.revoke(lease);
  } else {
    fixture.scheduler.waiting().drop_expired(kNow + Duration(5));
    CHECK(fixture.tenancies().at(lease).swapped.empty());
    CHECK(fixture.tenancies().at(lease).swap.held_blocks() == 0);
  }
  const auto ends = only<Completed>(fixture.scheduler.take_events());
  CHECK(ends.size() == (with_lease ? 2 : 1));
  CHECK(fixture.scheduler.transfers().empty());
}

TEST_CASE("swap: a step that fails before its copies plans the same copies again, and no others") {
  SwapPair pair;
  pair.step_until_preempted(GENERATE(StepFault::BeforeCopies, StepFault::InCopy));
  CHECK(pair.copied_blocks == 0);
  REQUIRE(pair.scheduler.transfers().size() == 1);
  const std::vector<BlockCopy> copies = pair.scheduler.transfers()[0].copies;
  pair.step(StepFault::BeforeCopies);
  REQUIRE(pair.scheduler.transfers().size() == 1);
  CHECK(pair.scheduler.transfers()[0].copies == copies);
  pair.step(StepFault::AfterRows);
  CHECK(pair.scheduler.transfers().empty());
  CHECK(pair.copied_blocks == 2);
  pair.finish();
  CHECK(pair.copied_blocks == 3);
  CHECK(pair.rows["younger"] == 49);
}

TEST_CASE("swap: nothing is admitted while copies wait") {
  SwapPair pair;
  pair.step_until_preempted(StepFault::BeforeCopies);
  REQUIRE(pair.scheduler.cancel(RequestId{"older"}));
  pair.step(StepFault::BeforeCopies);
  CHECK(pair.scheduler.running().size() == 0);
  pair.step();
  pair.step();
  CHECK(pair.scheduler.running().size() == 1);
}

TEST_CASE("swap: what was not copied back yet is not cached") {
  SwapPair pair;
  pair.step_until_preempted();
  const PromptRequest waiting = pair.tenancy().waiting.front();
  while (!pair.ends.contains("older")) pair.step();
  pair.step(StepFault::BeforeCopies);
  REQUIRE(pair.scheduler.transfers().size() == 1);
  REQUIRE(pair.scheduler.cancel(RequestId{"younger"}));
  CHECK(pair.scheduler.transfers().empty());

  PromptRequest same_text = pair.request(pair.lease_id, "same text");
  same_text.prompt = waiting.prompt;
  same_text.prompt.insert(same_text.prompt.end(), waiting.emitted.begin(), waiting.emitted.end());
  pair.submit(same_text);
  while (pair.scheduler.has_work()) pair.step();  // finds the content of its blocks, or fails
  CHECK(pair.rows["same text"] >= 16);
}

TEST_CASE("swap: extents whose blocks are to be copied are not given back") {
  SwapPair pair;
  pair.grow(pair.lease_id, 1);  // or nothing would be free
  pair.step_until_preempted(StepFault::BeforeCopies);
  REQUIRE(pair.scheduler.cancel(RequestId{"older"}));
  for (const auto pool : {wire::MemoryPool::Kv, wire::MemoryPool::Swap})
    CHECK(pair.scheduler.blocks().remove_free_extents(pair.lease_id, 9, pool).empty());
  pair.step();
  CHECK_FALSE(pair.scheduler.blocks().remove_free_extents(pair.lease_id, 9).empty());
}

TEST_CASE("swap: a request holds text once from its admission to its end") {
  SwapPair pair;
  pair.step_until_preempted();
  std::map<std::string, std::vector<bool>> changes;
  const auto collect = [&] {
    for (const KvChange& change : pair.scheduler.take_kv_changes())
      changes[change.engine_request_id.value].push_back(change.is_held);
  };
  collect();
  CHECK(changes["younger"] == std::vector{true});
  const bool ends_swapped = GENERATE(true, false);
  if (ends_swapped) REQUIRE(pair.scheduler.cancel(RequestId{"younger"}));
  while (pair.scheduler.has_work()) pair.step();
  collect();
  pair.scheduler.end_lease(pair.lease_id, {});
  collect();
  CHECK(changes["younger"] == std::vector{true, false});
}

TEST_CASE("swap: a quota moves blocks of another lease of the tenant to that lease's swap") {
  SwapPair pair(0);
  REQUIRE(pair.scheduler.cancel(RequestId{"younger"}));
  const LeaseId other = pair.lease_of({"t1"}, 9, 20);
  pair.grow(pair.lease_id, 20);
  pair.grow_swap(other, 4);
  pair.limit_blocks(7);
  PromptRequest younger = pair.request(pair.lease_id, "younger", 20, 30);
  younger.lease = other;
  pair.submit(younger);
  pair.ends.clear();
  (void)pair.scheduler.take_events();
  pair.step_until_preempted();
  CHECK(pair.preemptions[0].cause == Errc::QuotaBlocks);
  CHECK(pair.preemptions[0].swapped_blocks > 0);
  CHECK(pair.tenancies().at(other).swap.held_blocks() > 0);
  pair.finish();
  CHECK(pair.rows["younger"] == 49);
}

TEST_CASE("swap: nothing of a swapped request is charged again") {
  SwapPair pair;
  pair.step_until_preempted();
  while (!pair.ends.contains("older")) pair.step();
  pair.scheduler.admit(kNow);
  REQUIRE(pair.scheduler.running().size() == 1);
  const Sequence& sequence = *pair.running()[0];
  CHECK(sequence.pending() == 1);
  CHECK(sequence.prompt_rows(1) == 0);
  pair.finish();
}

}  // namespace leasehold::testing
