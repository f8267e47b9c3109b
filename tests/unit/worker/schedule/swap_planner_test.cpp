// Whether a victim is swapped out, and the copies of a swap, without a scheduler.
#include "worker/schedule/memory/swap_planner.hpp"

#include "tests/unit/worker/schedule/parts_fixture.hpp"

namespace leasehold::testing {
namespace {

/// A victim with two committed blocks, which are cheaper to copy than to compute.
struct Swapping : PartsFixture {
  using Choice = SwapPlanner::Choice;
  static constexpr double kRow_ns = 1'000;

  Swapping() { limits.block_size_bytes = 1'024; }

  Transfers transfers{running};
  SwapPlanner swap{limits, tenancies, running, kv, transfers};
  Tenancy& tenancy = lease(1, 8);
  Sequence& victim = run(tenancy, "victim", 33, 32);
};

}  // namespace

TEST_CASE("swap planner: a victim is dropped while the time of a row is unknown") {
  Swapping test;
  test.tenancy.swap.add_extent(ExtentId{2}, 2);
  CHECK(test.swap.choose(test.victim, std::nullopt) == Swapping::Choice::Drop);
  CHECK(test.swap.choose(test.victim, Swapping::kRow_ns) == Swapping::Choice::SwapOut);
}

TEST_CASE("swap planner: a reader of published text is dropped") {
  Swapping test;
  test.tenancy.swap.add_extent(ExtentId{2}, 2);
  test.victim.shared_lease = LeaseId{9, 1};
  CHECK(test.swap.choose(test.victim, Swapping::kRow_ns) == Swapping::Choice::Drop);
}

TEST_CASE("swap planner: a victim awaits swap blocks until the broker refuses them") {
  Swapping test;
  CHECK(test.swap.choose(test.victim, Swapping::kRow_ns) == Swapping::Choice::Await);
  CHECK(test.tenancy.growth.swap_wanted() == 2);
  test.tenancy.growth.deny_swap();
  CHECK(test.swap.choose(test.victim, Swapping::kRow_ns) == Swapping::Choice::Drop);
}

TEST_CASE("swap planner: blocks move to swap and back, and each copy is listed") {
  Swapping test;
  test.tenancy.swap.add_extent(ExtentId{2}, 2);
  CHECK(test.swap.swap_out(test.victim) == 2);
  CHECK(test.tenancy.pool.free_blocks() == 8);
  CHECK(test.tenancy.swap.free_blocks() == 0);
  REQUIRE(test.transfers.has(test.victim));
  const SwapTransfer out = test.transfers.take(test.victim);
  test.swap.swap_in(test.victim, {});
  CHECK(test.tenancy.swap.free_blocks() == 2);
  REQUIRE(test.transfers.has(test.victim));
  const SwapTransfer in = test.transfers.take(test.victim);
  REQUIRE(in.copies.size() == out.copies.size());
  for (std::size_t i = 0; i < in.copies.size(); ++i) CHECK(in.copies[i].from == out.copies[i].to);
}

TEST_CASE("swap planner: a swapped request that ends frees its swap blocks and its copies") {
  Swapping test;
  test.tenancy.swap.add_extent(ExtentId{2}, 2);
  const PromptRequest request = test.victim.request;
  (void)test.swap.swap_out(test.victim);
  test.tenancy.swapped.emplace(request.engine_request_id, test.running.remove(test.victim));
  test.swap.free(request, {.reason = CompletionReason::Cancelled});
  CHECK(test.tenancy.swap.free_blocks() == 2);
  CHECK(test.tenancy.swapped.empty());
  CHECK(test.transfers.empty());
  const std::vector<KvChange> changes = test.kv.take_changes();
  REQUIRE(changes.size() == 1);
  CHECK_FALSE(changes[0].is_held);
}

}  // namespace leasehold::testing
