/// A seeded random walk of 100 000 operations with two pools and failing steps: both pools are
/// conserved at every tick, each row finds the contents of the rows before it, and each request
/// ends once.
#include <catch2/catch.hpp>
#include <iterator>

#include "common/random.hpp"
#include "tests/support/test_seed.hpp"
#include "tests/unit/worker/schedule/swap_fixture.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kSlots = 3;
constexpr int kOperations = 100'000;

class SwapWalk {
 public:
  SwapWalk(std::uint64_t seed, std::uint32_t state_blocks, const KvWindow& window)
      : random_(seed),
        fixture_({.token_budget = window.n_groups > 0 ? 16u : 256u,
                  .state_blocks = state_blocks,
                  .window = window}),
        state_blocks_(state_blocks),
        window_blocks_(window.n_groups * window.most_blocks(16)) {
    for (std::uint32_t slot = 1; slot <= kSlots; ++slot) open(slot);
  }

  void step() {
    const std::uint64_t what = random_.below(16);
    if (what < 4 && open_.size() < 14) submit();
    if (what == 4) cancel();
    if (what == 5 && random_.below(20) == 0) revoke();
    if (what == 6) reclaim();
    if (what == 7 && random_.below(40) == 0) end_all();
    answer_growth();
    tick(random_.below(4) == 0 ? static_cast<StepFault>(random_.below(5)) : StepFault::None);
  }

  void finish() {
    for (int i = 0; i < 3'000 && fixture_.scheduler.has_work(); ++i) {
      answer_growth();
      tick(StepFault::None);
    }
    REQUIRE_FALSE(fixture_.scheduler.has_work());
    REQUIRE(open_.empty());
    REQUIRE(fixture_.scheduler.transfers().empty());
    for (const auto& [lease, tenancy] : fixture_.tenancies()) {
      REQUIRE(tenancy.pool.held_blocks() == tenancy.prefixes.unused());
      REQUIRE(tenancy.swap.held_blocks() == 0);
    }
  }

  std::map<CompletionReason, int> ends_swapped;
  int swapped = 0;
  int dropped = 0;
  int completed_after_swap = 0;
  std::size_t reclaimed_swap = 0;
  std::uint32_t copied() const { return fixture_.copied_blocks; }
  /// Submits, cancels, revocations and preemptions, which drop or swap out.
  int operations() const { return operations_ + swapped + dropped; }

 private:
  struct Open {
    std::uint32_t emitted = 0;
    std::uint32_t known = 0;
    bool was_swapped = false;
    bool was_dropped = false;
  };

  void open(std::uint32_t slot) {
    const LeaseId lease{slot, ++generation_};
    const TenantId tenant{"t" + std::to_string(slot)};
    const std::uint32_t of_states = 2 * kStateCopies * state_blocks_;
    fixture_.limit_blocks(12 + of_states + 2 * window_blocks_, tenant, 4);
    fixture_.add_lease(lease, tenant, 8 + of_states + window_blocks_ + window_blocks_ / 2);
    fixture_.grow_swap(lease, 3 + state_blocks_ + window_blocks_);
    leases_[slot] = lease;
  }
  LeaseId any_lease() { return leases_[static_cast<std::uint32_t>(1 + random_.below(kSlots))]; }

  void submit() {
    const std::string id = "r" + std::to_string(++ids_);
    PromptRequest request =
        fixture_.request(any_lease(), id, static_cast<std::uint32_t>(1 + random_.below(50)),
                         static_cast<std::uint32_t>(1 + random_.below(60)));
    const auto text = static_cast<TokenId>(random_.below(2));
    if (random_.below(2) == 0) std::ranges::fill(request.prompt, text);
    if (random_.below(6) == 0)
      request.deadline = kNow + Duration(static_cast<std::int64_t>(now_) + 40);
    if (!fixture_.scheduler.submit(request)) return;
    ++operations_;
    open_[id] = {.known = static_cast<std::uint32_t>(request.prompt.size())};
  }

  void cancel() {
    if (open_.empty()) return;
    const auto which = std::next(open_.begin(), static_cast<long>(random_.below(open_.size())));
    note_swapped();
    ++operations_;
    REQUIRE(fixture_.scheduler.cancel(RequestId{which->first}));
    note(fixture_.scheduler.take_events());
  }

  void revoke() {
    const auto slot = static_cast<std::uint32_t>(1 + random_.below(kSlots));
    note_swapped();
    ++operations_;
    fixture_.revoke(leases_[slot]);
    note(fixture_.scheduler.take_events());
    open(slot);
  }

  void end_all() {
    note_swapped();
    fixture_.scheduler.end_all({Errc::MissingWeight, "blk.1"});
    note(fixture_.scheduler.take_events());
  }

  void reclaim() {
    const auto count = static_cast<std::uint32_t>(random_.below(2));
    reclaimed_swap += fixture_.scheduler.blocks()
                          .remove_free_extents(any_lease(), count, wire::MemoryPool::Swap)
                          .size();
  }

  void answer_growth() {
    for (const GrowthRequest& growth : fixture_.tenancies().take_growth_requests()) {
      if (growth.pool == wire::MemoryPool::Kv || random_.below(3) == 0) {
        fixture_.tenancies().deny_growth(growth);
      } else if (random_.below(2) == 0) {
        fixture_.grow_swap(growth.lease, growth.blocks);
      }  // or the answer comes later
    }
  }

  void tick(StepFault fault) {
    note_swapped();
    note(fixture_.swap_tick(fault, kNow + Duration(static_cast<std::int64_t>(++now_))));
    REQUIRE(fixture_.scheduler.running().size() + fixture_.tenancies().waiting_count() ==
            open_.size());
  }

  void note_swapped() {
    swapped_now_.clear();
    for (const auto& [lease, tenancy] : fixture_.tenancies())
      for (const auto& [id, sequence] : tenancy.swapped) swapped_now_.insert(id.value);
  }

  void note(const std::vector<SchedulerEvent>& events) {
    for (const SchedulerEvent& event : events) {
      if (const auto* token = std::get_if<Token>(&event)) {
        REQUIRE(open_.at(token->engine_request_id.value).emitted++ == token->position);
      } else if (const auto* end = std::get_if<Completed>(&event)) {
        close(*end);
      } else if (const auto* rejected = std::get_if<AdmissionRejected>(&event)) {
        REQUIRE(open_.erase(rejected->engine_request_id.value) == 1);
      } else if (const auto* preempted = std::get_if<Preempted>(&event)) {
        note_preempted(*preempted);
      }
    }
  }

  void note_preempted(const Preempted& preempted) {
    Open& open = open_.at(preempted.engine_request_id.value);
    REQUIRE(open.emitted == preempted.emitted_tokens);
    ++(preempted.swapped_blocks > 0 ? swapped : dropped);
    (preempted.swapped_blocks > 0 ? open.was_swapped : open.was_dropped) = true;
  }

  /// A request that was swapped and never dropped computed each row at most once.
  void close(const Completed& end) {
    const std::string& id = end.engine_request_id.value;
    const Open& open = open_.at(id);
    REQUIRE(open.emitted == end.emitted_tokens);
    if (swapped_now_.contains(id)) ++ends_swapped[end.reason];
    if (open.was_swapped && !open.was_dropped) {
      REQUIRE(fixture_.rows[id] < open.known + open.emitted + 1);
      if (end.reason == CompletionReason::MaxTokensReached) ++completed_after_swap;
    }
    REQUIRE(open_.erase(id) == 1);
  }

  SeededRandom random_;
  SwapFixture fixture_;
  std::uint32_t state_blocks_;
  std::uint32_t window_blocks_;  // of one request
  std::map<std::uint32_t, LeaseId> leases_;
  std::map<std::string, Open> open_;
  std::set<std::string> swapped_now_;  // before the events that are noted
  std::uint64_t generation_ = 0;
  std::uint64_t now_ = 0;
  std::uint64_t ids_ = 0;
  int operations_ = 0;  // submits, cancels and revocations
};

}  // namespace

TEST_CASE("swap: random requests, ends and failed steps lose no block and no content") {
  const std::uint64_t seed = test_seed(11);
  const auto [state_blocks, window] = GENERATE(
      table<std::uint32_t, KvWindow>({{0, {}}, {1, {}}, {0, {.n_groups = 2, .positions = 20}}}));
  CAPTURE(seed, state_blocks, window.positions);
  SwapWalk walk(seed, state_blocks, window);
  while (walk.operations() < kOperations) walk.step();
  walk.finish();
  // Or the walk is too short to prove anything.
  CHECK(walk.swapped > 200);
  CHECK(walk.dropped > 100);
  CHECK(walk.copied() > 500);
  CHECK(walk.completed_after_swap > 50);
  CHECK(walk.reclaimed_swap > 20);
  for (const CompletionReason reason :
       {CompletionReason::Cancelled, CompletionReason::Revoked, CompletionReason::DeadlineExceeded,
        CompletionReason::EngineError}) {
    CAPTURE(name(reason));
    CHECK(walk.ends_swapped[reason] > 0);
  }
}

}  // namespace leasehold::testing
