// Rows for proposed tokens, without a scheduler.
#include "worker/schedule/rows/proposal_planner.hpp"

#include "tests/unit/worker/schedule/parts_fixture.hpp"

namespace leasehold::testing {
namespace {

/// A decoding sequence with two proposals.
struct Planning : PartsFixture {
  explicit Planning(std::uint32_t blocks) : tenancy(lease(1, blocks)) {
    limits.speculate = 4;
    sequence.proposals = {5, 6};
    tenancies.note_change(tenancy.tenant);
    tenancies.settle_active();
  }
  StepPlan decode_plan() { return {.parts = {{&sequence, 1, true}}}; }

  ProposalPlanner proposals{limits, tenancies, running, kv};
  Tenancy& tenancy;
  Sequence& sequence = run(tenancy, "decodes", 17, 16);
};

}  // namespace

TEST_CASE("proposal planner: proposals get rows after the known token, while blocks are free") {
  Planning roomy(8);
  StepPlan plan = roomy.decode_plan();
  CHECK(roomy.proposals.add_rows(plan, 1) == 2);
  CHECK(plan.parts[0].n_rows == 3);
  CHECK(plan.parts[0].n_proposed == 2);

  Planning tight(1);
  plan = tight.decode_plan();
  CHECK(tight.proposals.add_rows(plan, 1) == 0);
  CHECK(plan.parts[0].n_rows == 1);
}

TEST_CASE("proposal planner: no proposal gets a row while a prompt runs") {
  Planning test(8);
  CHECK(test.proposals.plan().parts.size() == 1);
  Sequence& prompt = test.run(test.tenancy, "prompt", 20, 0);
  StepPlan plan = test.decode_plan();
  CHECK(test.proposals.add_rows(plan, 1) == 0);
  CHECK(test.proposals.plan().parts.empty());

  prompt.request.prompt_logprobs = 0;
  prompt.untaken_positions = kMaxUntakenLogprobs;  // its client does not read
  CHECK(test.proposals.plan().parts.size() == 1);
  CHECK(test.proposals.add_rows(plan, 1) == 2);
}

TEST_CASE("proposal planner: accepted proposals are counted, and used proposals are cleared") {
  Planning test(8);
  StepPlan plan = test.decode_plan();
  REQUIRE(test.proposals.add_rows(plan, 1) == 2);
  test.proposals.note_drawn(plan.parts[0], {{.sampled = {5}}, {.sampled = {9}}});
  CHECK(test.proposals.counters().proposed == 2);
  CHECK(test.proposals.counters().accepted == 1);
  CHECK(test.sequence.proposals.empty());
}

}  // namespace leasehold::testing
