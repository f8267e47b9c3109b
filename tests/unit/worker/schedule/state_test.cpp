// The recurrent state of sequences in the scheduler: its blocks, its moves to swap and back.
#include <catch2/catch.hpp>

#include "tests/unit/worker/schedule/swap_pair.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kState = 2;  // blocks of a copy

SwapPair pair_with_state(std::uint64_t block_size_bytes = 1024) {
  return SwapPair(8, block_size_bytes, 30, kState);
}

}  // namespace

TEST_CASE("state: an admitted sequence holds both copies of its state, and an ended one none") {
  SchedulerFixture fixture({.state_blocks = kState});
  const LeaseId lease = fixture.lease(1, 20);
  fixture.submit(lease, "r", 20, 2);
  fixture.tick();
  const Tenancy& tenancy = fixture.tenancies().at(lease);
  CHECK(tenancy.pool.held_blocks() == 2 + 1 + kStateCopies * kState);
  while (fixture.scheduler.has_work()) fixture.tick();
  CHECK(tenancy.pool.held_blocks() == tenancy.prefixes.unused());
}

TEST_CASE("state: a request whose state exceeds the tenant's blocks is refused at submit") {
  SchedulerFixture fixture({.state_blocks = kState});
  const LeaseId lease = fixture.lease(1, 20);
  fixture.limit_blocks(2 + 1 + kStateCopies * kState - 1);
  const Result<void> refused = fixture.scheduler.submit(fixture.request(lease, "r", 20, 2));
  REQUIRE(refused.error().code == Errc::QuotaBlocks);
  fixture.limit_blocks(2 + 1 + kStateCopies * kState);
  CHECK(fixture.scheduler.submit(fixture.request(lease, "r", 20, 2)));
}

TEST_CASE("state: a lease without room for the state asks for all that the request lacks") {
  SchedulerFixture fixture({.state_blocks = kState});
  const LeaseId lease = fixture.lease(1, 3);
  fixture.submit(lease, "r", 20, 2);
  fixture.tick();
  CHECK(fixture.running().empty());
  const std::vector<GrowthRequest> growth = fixture.tenancies().take_growth_requests();
  REQUIRE(growth.size() == 1);
  CHECK(growth[0].blocks == kStateCopies * kState);
}

TEST_CASE("state: the state of a swapped sequence returns with its positions") {
  SwapPair pair = pair_with_state();
  pair.step_until_preempted();
  CHECK(pair.preemptions[0].swapped_blocks == 2 + kState);
  CHECK(pair.preemptions[0].freed_blocks == 3 + kStateCopies * kState);
  pair.finish();
  CHECK(pair.copied_blocks == 2 * (2 + kState));
  CHECK(pair.rows["younger"] == 49);
  CHECK(pair.is_all_free());
}

TEST_CASE("state: a dropped sequence goes on from its cached state, or computes it again") {
  const bool is_evicted = GENERATE(false, true);
  SwapPair pair = pair_with_state(1 << 20);
  pair.step_until_preempted();
  CHECK(pair.preemptions[0].swapped_blocks == 0);
  if (is_evicted) {
    pair.limit_blocks(1);
    pair.limit_blocks(100);
  }
  pair.finish();
  CHECK((pair.rows["younger"] > 49) == is_evicted);
  CHECK(pair.is_all_free());
}

TEST_CASE("state: a step that fails after its rows were computed is repeated from the same state") {
  SwapPair pair = pair_with_state();
  for (int i = 0; i < 10; ++i) pair.step(i % 2 == 0 ? StepFault::AfterRows : StepFault::None);
  pair.finish();
}

namespace {

/// Texts of one lease with room for several of them.
struct Texts : SwapFixture {
  explicit Texts(std::uint32_t blocks = 200)
      : SwapFixture({.token_budget = 1024, .max_context = 1024, .state_blocks = kState}),
        lease_id(lease(1, blocks)) {
    limit_blocks(1000);
  }
  /// Runs a request to its end, and returns the positions that it did not compute.
  std::uint32_t run(const std::string& id, std::vector<TokenId> prompt, std::uint32_t tokens = 3) {
    PromptRequest asked = request(lease_id, id, 1, tokens);
    asked.prompt = std::move(prompt);
    submit(asked);
    std::optional<Completed> end;
    for (int i = 0; i < 400 && !end; ++i) {
      for (const Completed& each : only<Completed>(swap_tick())) end = each;
    }
    REQUIRE(end);
    CHECK(rows[id] + end->cached_tokens.value() == asked.prompt.size() + tokens - 1);
    return end->cached_tokens.value();
  }
  const Tenancy& tenancy() const { return scheduler.tenancies().at(lease_id); }

  LeaseId lease_id;
};

/// `count` tokens, then others.
std::vector<TokenId> text(std::uint32_t count, std::uint32_t others = 0, TokenId other = 9) {
  std::vector<TokenId> tokens(count, 7);
  tokens.insert(tokens.end(), others, other);
  return tokens;
}

}  // namespace

TEST_CASE("state: a text that goes on after its end computes only what is new") {
  Texts texts;
  CHECK(texts.run("first", text(20)) == 0);
  std::vector<TokenId> next = text(20);
  next.insert(next.end(), {2, 2, 2, 5, 5});  // the fixture's tokens, then a new question
  CHECK(texts.run("second", next) == 22);
  next.insert(next.end(), {2, 2, 2, 6});
  CHECK(texts.run("third", next) == 27);
}

TEST_CASE("state: a text that leaves an ended one before its end starts at its last snapshot") {
  Texts texts;
  constexpr std::uint32_t kAt = kSnapshotPositions;
  CHECK(texts.run("first", text(2 * kAt + 40)) == 0);
  CHECK(texts.run("shorter", text(2 * kAt + 10, 5)) == 2 * kAt);
  CHECK(texts.run("half", text(kAt + 30, 5)) == kAt);
  CHECK(texts.run("again", text(kAt + 30, 5, 8)) == kAt);
  CHECK(texts.run("other", text(kAt - 1, 5)) == 0);
}

TEST_CASE("state: a lease without room for both gives the cached state to the request") {
  constexpr std::uint32_t kAt = kSnapshotPositions;
  constexpr std::uint32_t kNeeded = kAt / SwapFixture::kBlock + 2 + 1 + kStateCopies * kState;
  Texts texts(kNeeded + kState);
  CHECK(texts.run("first", text(kAt + 10)) == 0);
  texts.deny_growth_requests();
  CHECK(texts.run("second", text(kAt + 5, 5)) == kAt);
}

TEST_CASE("state: states take at most half of a lease") {
  Texts texts(40);
  for (std::uint32_t i = 0; i < 30; ++i)
    texts.run("r" + std::to_string(i), std::vector<TokenId>(3, static_cast<TokenId>(20 + i)));
  CHECK(texts.tenancy().prefixes.states().unused() == 20);
}

TEST_CASE("state: a snapshot that is not made leaves no block behind and is made later") {
  constexpr std::uint32_t kAt = kSnapshotPositions;
  const StepFault fault = GENERATE(StepFault::BeforeCopies, StepFault::InCopy);
  const bool is_cancelled = GENERATE(false, true);
  Texts texts;
  texts.submit(texts.request(texts.lease_id, "first", kAt + 40, 3));
  texts.swap_tick();
  texts.swap_tick(fault);
  REQUIRE_FALSE(texts.scheduler.transfers().empty());
  if (is_cancelled) {
    REQUIRE(texts.scheduler.cancel(RequestId{"first"}));
    (void)texts.scheduler.take_events();
  }
  while (texts.scheduler.has_work()) texts.swap_tick();
  CHECK(texts.tenancy().pool.held_blocks() == texts.tenancy().prefixes.unused());
  CHECK((texts.tenancy().prefixes.states().unused() > 0) != is_cancelled);
}

TEST_CASE("state: the text of a shared lease is refused, because no state is published with it") {
  SchedulerFixture fixture({.state_blocks = kState});
  fixture.tenancies().add({.lease = {7, 1}, .tenant = public_owner(), .is_shared = true});
  const auto refused = fixture.scheduler.fill_request({7, 1}, std::vector<TokenId>(40, 1));
  CHECK(refused.error().code == Errc::UnsupportedModel);
}

}  // namespace leasehold::testing
