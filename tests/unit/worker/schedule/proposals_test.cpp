/// Which proposals get rows, and what a commit makes of them.
#include <catch2/catch.hpp>

#include "tests/unit/worker/schedule/scheduler_fixture.hpp"

namespace leasehold::testing {
namespace {

constexpr TokenId kRight = 2;
constexpr TokenId kWrong = 3;

/// Sequences that decode; each proposes the token that is always drawn.
struct Proposing : SchedulerFixture {
  explicit Proposing(SchedulerLimits limits = {.speculate = 4}) : SchedulerFixture(limits) {}

  void propose(std::vector<TokenId> proposals = std::vector<TokenId>(8, kRight)) {
    for (const auto& sequence : scheduler.running().all()) sequence->proposals = proposals;
  }
  const StepPlan& plan_with(std::vector<TokenId> proposals = std::vector<TokenId>(8, kRight)) {
    propose(std::move(proposals));
    scheduler.admit(kNow);
    plan = scheduler.plan();
    return plan;
  }
  /// Draws the right token from each row up to the first proposal that is wrong.
  std::vector<SchedulerEvent> commit() {
    for (const PlannedRows& part : plan.parts) {
      std::vector<DrawnToken> drawn;
      do {
        drawn.push_back({.sampled = {kRight}});
      } while (drawn.size() <= part.n_proposed &&
               part.sequence->proposals[drawn.size() - 1] == kRight);
      scheduler.commit(part, std::move(drawn));
    }
    return scheduler.take_events();
  }
  std::vector<std::uint32_t> proposed() const {
    std::vector<std::uint32_t> all;
    for (const PlannedRows& part : plan.parts) all.push_back(part.n_proposed);
    return all;
  }
};

}  // namespace

TEST_CASE(
    "proposals: right ones are committed with the token behind them, and wrong ones are not") {
  Proposing fixture;
  fixture.submit(fixture.lease(1, 20), "r", 4, 20);
  fixture.tick();
  REQUIRE(fixture.plan_with({kRight, kRight, kWrong, kRight}).parts[0].n_rows == 5);
  const auto tokens = only<Token>(fixture.commit());
  REQUIRE(tokens.size() == 3);
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(tokens[i].position == i + 1);
  const Sequence& sequence = *fixture.running().front();
  CHECK(sequence.tokens.size() == 4 + 4);
  CHECK(sequence.blocks.committed() == 4 + 3);
  CHECK(sequence.pending() == 1);
  CHECK(fixture.scheduler.proposals().counters().proposed == 4);
  CHECK(fixture.scheduler.proposals().counters().accepted == 2);
}

TEST_CASE(
    "proposals: with a state a wrong one keeps no row, and the next step computes them again") {
  Proposing fixture({.state_blocks = 2, .speculate = 4});
  fixture.submit(fixture.lease(1, 20), "r", 4, 20);
  fixture.tick();
  const Sequence& sequence = *fixture.running().front();
  const auto from = [&] { return sequence.blocks.recurrent().from().front(); };
  const BlockId before = from();
  fixture.plan_with({kRight, kRight, kWrong, kRight});
  CHECK(only<Token>(fixture.commit()).size() == 3);
  CHECK(sequence.blocks.committed() == 4);
  CHECK(from() == before);

  const PlannedRows& again = fixture.plan_with().parts.at(0);
  CHECK(again.n_rows == 4);
  CHECK(again.n_proposed == 0);
  CHECK(again.wants_token);
  CHECK(only<Token>(fixture.commit()).size() == 1);
  CHECK(sequence.blocks.committed() == 4 + 4);
  CHECK(from() != before);

  CHECK(fixture.plan_with().parts.at(0).n_proposed == 4);
  CHECK(only<Token>(fixture.commit()).size() == 5);
  CHECK(sequence.pending() == 1);
}

TEST_CASE("proposals: rows that are computed again leave every decoding sequence a row") {
  Proposing fixture({.max_batch_size = 3, .token_budget = 5, .state_blocks = 1, .speculate = 4});
  const LeaseId lease = fixture.lease(1, 60);
  fixture.submit(lease, "r", 1, 40);
  fixture.submit(lease, "s", 1, 40);
  fixture.tick();
  fixture.plan_with({kRight, kWrong});
  REQUIRE(fixture.proposed() == std::vector<std::uint32_t>{2, 1});
  for (const PlannedRows& part : fixture.plan.parts) part.sequence->proposals.resize(2, kWrong);
  fixture.commit();
  fixture.submit(lease, "t", 1, 40);
  fixture.plan_with({});
  std::vector<std::uint32_t> rows;
  for (const PlannedRows& part : fixture.plan.parts) rows.push_back(part.n_rows);
  CHECK(rows == std::vector<std::uint32_t>{3, 1, 1});
}

TEST_CASE("proposals: they end where a copy of the state is due") {
  Proposing fixture({.max_context = 1024, .state_blocks = 1, .speculate = 4});
  fixture.submit(fixture.lease(1, 60), "r", kSnapshotPositions - 3, 20);
  while (fixture.running().empty() || fixture.running().front()->emitted() == 0) fixture.tick();
  fixture.plan_with();
  CHECK(fixture.proposed() == std::vector<std::uint32_t>{2});
  fixture.commit();
  CHECK(fixture.running().front()->blocks.committed() == kSnapshotPositions);
}

TEST_CASE(
    "proposals: with a state the last row of a prompt gets none, so that each token is paid once") {
  for (const std::uint32_t state_blocks : {0u, 1u}) {
    CAPTURE(state_blocks);
    Proposing fixture({.state_blocks = state_blocks, .speculate = 4});
    fixture.submit(fixture.lease(1, 20), "r", 1, 20);
    fixture.scheduler.admit(kNow);
    fixture.plan_with();
    CHECK(fixture.proposed() == std::vector<std::uint32_t>{state_blocks > 0 ? 0u : 4u});
    fixture.commit();
    fixture.plan_with();
    CHECK(fixture.proposed() == std::vector<std::uint32_t>{4});
  }
}

TEST_CASE("proposals: the tenant pays for all rows and is served those that stay") {
  Proposing fixture;
  fixture.submit(fixture.lease(1, 20), "r", 4, 20);
  fixture.tick();
  (void)fixture.tenancies().take_served();
  const auto& account = *fixture.tenancies().begin()->second.account;
  const auto before = *account.counter;
  fixture.plan_with({kRight, kWrong, kRight, kRight});
  fixture.commit();
  CHECK(*account.counter - before == TokenCounters::cost(5, account.quota.weight));
  CHECK(fixture.tenancies().take_served().at(0).tokens == 2);
}

TEST_CASE("proposals: the last token is that of the request") {
  Proposing fixture;
  fixture.submit(fixture.lease(1, 20), "r", 4, 4);
  fixture.tick();
  fixture.plan_with();
  CHECK(fixture.proposed() == std::vector<std::uint32_t>{2});
  const auto events = fixture.commit();
  CHECK(only<Token>(events).size() == 3);
  REQUIRE(only<Completed>(events).size() == 1);
  CHECK(only<Completed>(events)[0].emitted_tokens == 4);
}

TEST_CASE("proposals: none beside a prompt, and no more than the step has rows and logits") {
  Proposing fixture({.max_batch_size = 3, .token_budget = 40, .speculate = 4});
  const LeaseId lease = fixture.lease(1, 60);
  fixture.submit(lease, "r", 4, 40);
  fixture.tick();
  fixture.plan_with();
  CHECK(fixture.proposed() == std::vector<std::uint32_t>{4});  // 1 + speculate rows have logits
  fixture.commit();
  fixture.submit(lease, "s", 100, 40);
  fixture.plan_with();
  CHECK(fixture.proposed() == std::vector<std::uint32_t>{0, 0});
  fixture.commit();
  while (fixture.running().back()->pending() > 1) fixture.tick();
  fixture.plan_with();
  CHECK(fixture.proposed() == std::vector<std::uint32_t>{2, 1});
}

TEST_CASE("proposals: they take free blocks only, and leave each sequence its next one") {
  Proposing fixture({.token_budget = 40, .tokens_per_block = 4, .speculate = 8});
  const LeaseId lease = fixture.lease(1, 5);
  fixture.submit(lease, "r", 4, 12);
  fixture.tick();  // a block is full, and the first token is drawn
  (void)fixture.tenancies().take_growth_requests();
  fixture.plan_with();
  const BlockPool& pool = fixture.tenancies().at(lease).pool;
  // Of 5 blocks one is the record, two are needed, one is for proposals, and one stays free.
  CHECK(fixture.proposed() == std::vector<std::uint32_t>{7});
  CHECK(pool.free_blocks() == 1);
  CHECK(fixture.tenancies().take_growth_requests().empty());
  fixture.commit();
}

TEST_CASE("proposals: blocks that lie beyond the text are free again after the step") {
  Proposing fixture({.token_budget = 40, .tokens_per_block = 4, .speculate = 8});
  const LeaseId lease = fixture.lease(1, 20);
  fixture.submit(lease, "r", 4, 40);
  fixture.tick();
  const BlockPool& pool = fixture.tenancies().at(lease).pool;
  const Sequence& sequence = *fixture.running().front();

  SECTION("no proposal was right: the sequence keeps the block of its last token") {
    fixture.plan_with(std::vector<TokenId>(8, kWrong));
    REQUIRE(sequence.blocks.blocks().size() == 4);  // 13 positions
    fixture.commit();
    CHECK(sequence.tokens.size() == 6);
    CHECK(sequence.blocks.blocks().size() == 2);
  }
  SECTION("some were right: it keeps their blocks, too") {
    fixture.plan_with({kRight, kRight, kRight, kWrong, kRight, kRight, kRight, kRight});
    REQUIRE(sequence.blocks.blocks().size() == 4);
    fixture.commit();
    CHECK(sequence.tokens.size() == 9);
    CHECK(sequence.blocks.blocks().size() == 3);
  }
  const auto own = sequence.blocks.blocks().size() + sequence.blocks.record_blocks().size();
  CHECK(pool.held_blocks() == own);
}

TEST_CASE("proposals: the record of a sequence names no block that may be given back") {
  Proposing fixture({.token_budget = 40, .tokens_per_block = 4, .speculate = 8});
  fixture.submit(fixture.lease(1, 20), "r", 4, 40);
  fixture.tick();
  fixture.plan_with(std::vector<TokenId>(8, kWrong));
  const Sequence& sequence = *fixture.running().front();
  REQUIRE(sequence.blocks.blocks().size() == 4);
  const TokenId drawn[] = {kRight};
  CHECK(sequence.record_commit(1, drawn).blocks.size() == 2);  // 4 + 1 positions
}

TEST_CASE("proposals: within its quota a tenant keeps the next block of each of its sequences") {
  Proposing fixture({.token_budget = 40, .tokens_per_block = 4, .speculate = 8});
  const LeaseId first = fixture.lease(1, 20);
  const LeaseId second = fixture.lease_of({"t1"}, 2, 20);
  fixture.limit_blocks(8);
  fixture.submit(first, "r", 4, 12);
  PromptRequest beside = fixture.request(second, "s", 4, 12);
  beside.tenant = {"t1"};
  fixture.submit(std::move(beside));
  fixture.tick();
  fixture.plan_with();
  // Each holds its record and two blocks, whose other positions are free for proposals. Of the two
  // blocks below the quota each may need one.
  CHECK(fixture.proposed() == std::vector<std::uint32_t>{3, 3});
  fixture.commit();
}

TEST_CASE("proposals: without room for rows of all, the tenant that was served least has them") {
  Proposing fixture({.max_batch_size = 5, .token_budget = 40, .speculate = 4});
  for (const std::uint32_t slot : {1u, 2u})
    fixture.submit(fixture.lease(slot, 20), "r" + std::to_string(slot), 4, 60);
  fixture.tick();
  std::map<TenantId, std::uint32_t> rows;
  for (int step = 0; step < 6; ++step) {
    for (const PlannedRows& part : fixture.plan_with().parts)
      rows[part.sequence->request.tenant] += part.n_proposed;
    fixture.commit();
  }
  REQUIRE(rows.size() == 2);
  CHECK(rows.begin()->second == rows.rbegin()->second);
}

TEST_CASE("proposals: before the plan it is known how many are worth making") {
  Proposing fixture({.max_batch_size = 3, .token_budget = 40, .speculate = 4});
  const LeaseId lease = fixture.lease(1, 60);
  const auto worth = [&] {
    std::vector<std::uint32_t> all;
    for (const PlannedRows& part : fixture.scheduler.proposals().plan().parts)
      all.push_back(part.n_proposed);
    return all;
  };
  fixture.submit(lease, "r", 4, 40);
  CHECK(worth().empty());  // it does not run
  fixture.tick();
  CHECK(worth() == std::vector<std::uint32_t>{4});
  fixture.submit(lease, "s", 100, 40);
  fixture.tick();
  CHECK(worth().empty());  // a prompt is computed
  while (fixture.running().back()->pending() > 1) fixture.tick();
  CHECK(worth() == std::vector<std::uint32_t>{2, 2});  // room for 3, which the plan divides
  fixture.running().front()->awaits_mask = true;
  CHECK(worth() == std::vector<std::uint32_t>{4});
}

TEST_CASE("proposals: the time of making them is part of their cost") {
  constexpr Duration kStep{1'000'000};
  const auto proposed_rows = [&](Duration of_making_one) {
    Proposing fixture;
    fixture.submit(fixture.lease(1, 40), "r", 4, 240);
    fixture.tick();
    fixture.scheduler.note_duration(kStep);
    std::uint32_t rows = 0;
    for (int step = 0; step < 40; ++step) {
      const StepPlan wanted = fixture.scheduler.proposals().plan();
      const std::uint32_t n_made = wanted.parts.at(0).n_proposed;
      if (n_made > 0) fixture.scheduler.proposals().note_proposing(n_made * of_making_one);
      fixture.plan_with(std::vector<TokenId>(n_made, kRight));
      rows = fixture.plan.parts.at(0).n_proposed;
      fixture.commit();
      fixture.scheduler.note_duration(kStep + rows * (kStep / 50));
    }
    CHECK((fixture.scheduler.proposals().counters().time > Duration::zero()) ==
          (of_making_one > Duration::zero()));
    return rows;
  };
  CHECK(proposed_rows(Duration::zero()) == 4);
  CHECK(proposed_rows(kStep / 20) > 0);
  CHECK(proposed_rows(2 * kStep) == 0);
}

}  // namespace leasehold::testing
