/// Two requests of one lease whose pool holds one of them.
#pragma once

#include <catch2/catch.hpp>

#include "tests/unit/worker/schedule/swap_fixture.hpp"

namespace leasehold::testing {

/// Two requests in a pool that holds one of them. The younger one is the victim.
struct SwapPair : SwapFixture {
  /// `state_blocks`: SchedulerLimits; the pool has room for the states of both, besides.
  explicit SwapPair(std::uint32_t swap_blocks = 4, std::uint64_t block_size_bytes = 1024,
                    std::uint32_t max_tokens = 30, std::uint32_t state_blocks = 0)
      : SwapFixture({.state_blocks = state_blocks}, block_size_bytes), tokens(max_tokens) {
    lease_id = lease(1, 6 + 2 * kStateCopies * state_blocks);
    if (swap_blocks > 0) grow_swap(lease_id, swap_blocks);
    submit("older");
    submit("younger");
  }

  using SwapFixture::submit;
  void submit(const std::string& id) { submit(lease_id, id, 20, tokens); }
  const Tenancy& tenancy() const { return scheduler.tenancies().at(lease_id); }
  bool is_swapped() const { return tenancy().swapped.contains(RequestId{"younger"}); }

  /// Denies growth of the KV pool and files the events of a tick. Growth of swap stays unanswered.
  void step(StepFault fault = StepFault::None, TimePoint now = kNow) {
    for (const GrowthRequest& growth : scheduler.tenancies().take_growth_requests()) {
      if (growth.pool == wire::MemoryPool::Kv) scheduler.tenancies().deny_growth(growth);
      if (growth.pool == wire::MemoryPool::Swap) swap_wanted = growth;
    }
    file(swap_tick(fault, now));
  }
  void file(const std::vector<SchedulerEvent>& events) {
    for (const Completed& end : only<Completed>(events))
      REQUIRE(ends.emplace(end.engine_request_id.value, end).second);
    for (const Preempted& preempted : only<Preempted>(events)) preemptions.push_back(preempted);
    for (const Token& token : only<Token>(events))
      REQUIRE(token.position == emitted[token.engine_request_id.value]++);
    REQUIRE(only<AdmissionRejected>(events).empty());
  }
  void step_until_preempted(StepFault fault = StepFault::None) {
    for (int i = 0; i < 200 && preemptions.empty(); ++i) step(fault);
    REQUIRE(preemptions.size() == 1);
    REQUIRE(preemptions[0].engine_request_id.value == "younger");
  }
  void finish() {
    for (int i = 0; i < 500 && scheduler.has_work(); ++i) step();
    REQUIRE_FALSE(scheduler.has_work());
    for (const char* id : {"older", "younger"}) {
      CAPTURE(id);
      CHECK(ends.at(id).reason == CompletionReason::MaxTokensReached);
      CHECK(emitted[id] == tokens);
    }
  }
  /// Both pools have all their blocks, cached ones included.
  bool is_all_free() const {
    return tenancy().swap.held_blocks() == 0 &&
           tenancy().pool.held_blocks() == tenancy().prefixes.unused();
  }

  std::uint32_t tokens;
  LeaseId lease_id;
  std::vector<Preempted> preemptions;
  std::map<std::string, Completed> ends;
  std::map<std::string, std::uint32_t> emitted;
  std::optional<GrowthRequest> swap_wanted;
};

}  // namespace leasehold::testing
