/// A seeded random walk over the calls of a scheduler, with its invariants checked at every tick.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <set>

#include "common/random.hpp"
#include "tests/support/block_conservation.hpp"
#include "tests/support/test_seed.hpp"
#include "tests/unit/worker/schedule/scheduler_fixture.hpp"

namespace leasehold::testing {
namespace {

/// Which requests' text is held, and what the prefix indexes say about it.
class HeldTexts {
 public:
  void submitted(const PromptRequest& request) { texts_[request.engine_request_id].of = request; }
  void emitted(const RequestId& id, TokenId token) { texts_.at(id).of.emitted.push_back(token); }
  void ended(const Completed& how) { texts_.at(how.engine_request_id).end = how.reason; }

  /// From now on the cached blocks of its former run and its sequence may hold the text.
  void preempted(const RequestId& id) { texts_.at(id).was_preempted = true; }
  void rejected(const RequestId& id) { REQUIRE(texts_.erase(id) == 1); }

  /// Between two changes of the schedule, so that no block is evicted and cached again in between.
  void observe(Scheduler& scheduler) {
    for (const KvChange& change : scheduler.take_kv_changes()) {
      Text& text = texts_.at(change.engine_request_id);
      text.holds += change.is_held ? 1 : -1;
      REQUIRE(text.holds >= 0);
      REQUIRE((text.holds <= 1 || text.was_preempted));
      if (change.is_held) continue;
      ++gone;
      if (text.was_preempted) continue;
      if (text.first) REQUIRE_FALSE(exists(scheduler, text));  // it was held after its end
      if (!text.first && text.end == CompletionReason::MaxTokensReached)
        REQUIRE(text.of.prompt.size() + text.of.emitted.size() <= kBlock);
    }
    std::set<RequestId> running;
    for (const auto& sequence : scheduler.running().all())
      running.insert(sequence->request.engine_request_id);
    for (auto& [id, text] : texts_) {
      if (running.contains(id)) {
        REQUIRE(text.holds >= 1);
      } else if (text.holds > 0 && !text.was_preempted) {
        if (!text.first) text.first = first_entry(scheduler, text);
        REQUIRE(exists(scheduler, text));
      }
    }
    std::erase_if(texts_, [](const auto& each) { return each.second.end && !each.second.holds; });
  }

  int gone = 0;
  std::size_t held() const { return texts_.size(); }

 private:
  static constexpr std::uint32_t kBlock = 16;
  struct Text {
    PromptRequest of;
    int holds = 0;
    bool was_preempted = false;
    std::optional<CompletionReason> end;
    std::optional<PrefixId> first;  // the entry of its first block, once it has ended
  };

  static std::optional<PrefixId> first_entry(const Scheduler& scheduler, const Text& text) {
    std::vector<TokenId> tokens = text.of.prompt;
    tokens.insert(tokens.end(), text.of.emitted.begin(), text.of.emitted.end());
    REQUIRE(tokens.size() >= kBlock);
    tokens.resize(kBlock + 1);  // a match leaves the last token to compute
    const Tenancy& tenancy = scheduler.tenancies().at(text.of.lease);
    const auto chain = tenancy.prefixes.match({&tenancy.tenant, tokens}, kBlock);
    REQUIRE(chain.size() == 1);
    return chain.front();
  }
  static bool exists(const Scheduler& scheduler, const Text& text) {
    if (!scheduler.tenancies().contains(text.of.lease)) return false;
    const auto entries = scheduler.tenancies().at(text.of.lease).prefixes.entries();
    return std::ranges::binary_search(entries, *text.first);
  }

  std::map<RequestId, Text> texts_;
};

class Walk {
 public:
  explicit Walk(std::uint64_t seed) : random_(seed), fixture_({.max_batch_size = 6}) {
    for (std::uint32_t slot = 1; slot <= 4; ++slot) open(slot);
  }

  void step() {
    const std::uint64_t what = random_.below(11);
    if (what < 4) submit();
    if (what == 4) cancel();
    if (what == 5) answer_growth_requests();
    if (what == 6 && random_.below(20) == 0) reopen();
    if (what == 7) reclaim();
    held.observe(fixture_.scheduler);
    check_block_conservation(fixture_.scheduler);
    note(fixture_.tick(kNow + Duration(++now_)));
    check();
  }

  void finish() {
    for (int i = 0; i < 2000 && fixture_.scheduler.has_work(); ++i) {
      answer_growth_requests();
      note(fixture_.tick(kNow + Duration(++now_)));
      check();
    }
    REQUIRE_FALSE(fixture_.scheduler.has_work());
    REQUIRE(open_.empty());
    for (const auto& [lease, tenancy] : fixture_.tenancies())
      REQUIRE(tenancy.pool.held_blocks() == tenancy.prefixes.unused());
    REQUIRE(held.held() > 0);
    for (const auto& [slot, lease] : leases_) fixture_.scheduler.end_lease(lease, {});
    held.observe(fixture_.scheduler);
    REQUIRE(held.held() == 0);
  }

  PrefixCounters prefix_counters() const { return fixture_.tenancies().prefix_counters(); }

  std::set<CompletionReason> ends;
  std::size_t reclaimed = 0;
  int rejections = 0;
  int preemptions = 0;
  HeldTexts held;

 private:
  void open(std::uint32_t slot) {
    const LeaseId lease{slot, ++generation_};
    max_concurrent_[lease] = 1 + static_cast<std::uint32_t>(random_.below(3));
    const TenantId tenant{"t" + std::to_string(slot)};
    fixture_.limit_blocks(12, tenant, max_concurrent_[lease]);
    fixture_.add_lease(lease, tenant, 4);
    leases_[slot] = lease;
  }

  void reopen() {
    const auto slot = static_cast<std::uint32_t>(1 + random_.below(4));
    fixture_.revoke(leases_[slot]);
    note(fixture_.scheduler.take_events());
    open(slot);
  }

  void submit() {
    const auto slot = static_cast<std::uint32_t>(1 + random_.below(4));
    const std::string id = "r" + std::to_string(++ids_);
    PromptRequest request =
        fixture_.request(leases_[slot], id, static_cast<std::uint32_t>(1 + random_.below(60)),
                         static_cast<std::uint32_t>(1 + random_.below(40)));
    // One of three texts, and sometimes an own end.
    const auto text = static_cast<TokenId>(random_.below(3));
    const bool has_own_end = random_.below(2) == 0;
    for (std::size_t i = 0; i < request.prompt.size(); ++i) {
      if (!has_own_end || i < 20) request.prompt[i] = text;
    }
    if (random_.below(4) == 0) request.deadline = kNow + Duration(now_ + 3);
    if (!fixture_.scheduler.submit(request)) return;
    open_[id] = 0;
    held.submitted(request);
  }

  void cancel() {
    if (open_.empty()) return;
    const auto which = std::next(open_.begin(), static_cast<long>(random_.below(open_.size())));
    REQUIRE(fixture_.scheduler.cancel(RequestId{which->first}));
  }

  void reclaim() {
    const LeaseId lease = leases_[static_cast<std::uint32_t>(1 + random_.below(4))];
    const auto count = static_cast<std::uint32_t>(random_.below(3));
    reclaimed += fixture_.scheduler.blocks().remove_free_extents(lease, count).size();
  }

  void answer_growth_requests() {
    for (const GrowthRequest& growth : fixture_.tenancies().take_growth_requests()) {
      if (random_.below(2) == 0) {
        fixture_.tenancies().deny_growth(growth);
      } else {
        fixture_.grow(growth.lease, 3);
      }
    }
  }

  void note(const std::vector<SchedulerEvent>& events) {
    REQUIRE(is_in_order(events));
    for (const SchedulerEvent& event : events) {
      if (const auto* token = std::get_if<Token>(&event)) {
        REQUIRE(open_.at(token->engine_request_id.value)++ ==
                token->position);  // consecutive positions
        held.emitted(token->engine_request_id, token->token);
      } else if (const auto* end = std::get_if<Completed>(&event)) {
        REQUIRE(open_.at(end->engine_request_id.value) == end->emitted_tokens);
        REQUIRE(open_.erase(end->engine_request_id.value) == 1);  // one end, and no event after it
        ends.insert(end->reason);
        held.ended(*end);
      } else if (const auto* rejected = std::get_if<AdmissionRejected>(&event)) {
        REQUIRE(open_.erase(rejected->engine_request_id.value) == 1);
        ++rejections;
        held.rejected(rejected->engine_request_id);
      } else if (const auto* preempted = std::get_if<Preempted>(&event)) {
        REQUIRE(open_.at(preempted->engine_request_id.value) == preempted->emitted_tokens);
        held.preempted(preempted->engine_request_id);
        ++preemptions;
      }
    }
  }

  void check() {
    const Scheduler& scheduler = fixture_.scheduler;
    std::map<LeaseId, std::uint32_t> running;
    std::set<std::uint32_t> places;
    for (const auto& sequence : scheduler.running().all()) {
      const LeaseId lease = sequence->request.lease;
      ++running[lease];
      REQUIRE(places.insert(sequence->stop_slot).second);
    }
    REQUIRE(scheduler.running().size() <= 6);
    check_block_conservation(scheduler);
    for (const auto& [lease, tenancy] : scheduler.tenancies()) {
      REQUIRE(running[lease] == tenancy.running);
      REQUIRE(running[lease] <= max_concurrent_.at(lease));
      REQUIRE(tenancy.pool.held_blocks() <= 12);
      for (const PromptRequest& waiting : tenancy.waiting) {
        const bool is_due = waiting.deadline && *waiting.deadline <= kNow + Duration(now_);
        REQUIRE((!is_due || waiting.was_admitted()));  // it may have been preempted in this tick
      }
    }
    REQUIRE(scheduler.running().size() + scheduler.tenancies().waiting_count() == open_.size());
    held.observe(fixture_.scheduler);
  }

  SeededRandom random_;
  SchedulerFixture fixture_;
  std::map<std::uint32_t, LeaseId> leases_;
  std::map<LeaseId, std::uint32_t> max_concurrent_;
  std::map<std::string, std::uint32_t> open_;  // tokens emitted so far
  std::uint64_t generation_ = 0;
  std::int64_t now_ = 0;
  std::uint64_t ids_ = 0;
};

}  // namespace

TEST_CASE(
    "scheduler: a random walk respects quotas, batch size and blocks, and each request ends once, "
    "its text held exactly as long as a block of it is cached") {
  const std::uint64_t seed = test_seed(7);
  CAPTURE(seed);
  Walk walk(seed);
  for (int i = 0; i < 10'000; ++i) walk.step();
  walk.finish();
  for (const CompletionReason reason :
       {CompletionReason::MaxTokensReached, CompletionReason::Cancelled, CompletionReason::Revoked,
        CompletionReason::DeadlineExceeded, CompletionReason::EngineError}) {
    CAPTURE(name(reason));
    REQUIRE(walk.ends.contains(reason));  // or the walk is too short to prove anything
  }
  REQUIRE(walk.preemptions > 50);
  REQUIRE(walk.reclaimed > 50);
  REQUIRE(walk.held.gone > 1000);
  REQUIRE(walk.prefix_counters().hits > 1000);
  REQUIRE(walk.prefix_counters().evictions > 500);
  REQUIRE(walk.prefix_counters().cross_tenant_hits == 0);
}

}  // namespace leasehold::testing
