// A running sequence moves to another lease of its tenant, without a scheduler.
#include "worker/schedule/request_moves.hpp"

#include "tests/unit/worker/schedule/parts_fixture.hpp"

namespace leasehold::testing {
namespace {

/// A sequence with two blocks, and a second lease of its tenant.
struct Moving : PartsFixture {
  static constexpr LeaseId kTo{2, 1};

  explicit Moving(std::uint32_t blocks) {
    tenancies.add({.lease = kTo, .tenant = old.tenant});
    to().pool.add_extent(ExtentId{2}, blocks);
  }
  Tenancy& to() { return tenancies.at(kTo); }
  Errc refusal(LeaseId lease) {
    const auto move = moves.begin(sequence, lease);
    REQUIRE_FALSE(move);
    return move.error().code;
  }

  PendingEvents events;
  RequestMoves moves{tenancies, kv, events};
  Tenancy& old = lease(1, 4);
  Sequence& sequence = run(old, "moves", 33, 32);
};

}  // namespace

TEST_CASE("request moves: a sequence moves only to another live lease of its tenant") {
  Moving test(4);
  const LeaseId foreign = test.lease(3, 4).lease;
  CHECK(test.refusal(test.old.lease) == Errc::BadRequest);
  CHECK(test.refusal(foreign) == Errc::LeaseFenced);
  CHECK(test.refusal({4, 1}) == Errc::LeaseFenced);
}

TEST_CASE("request moves: a lease without room asks for growth") {
  Moving test(1);
  CHECK(test.refusal(Moving::kTo) == Errc::PoolExhausted);
  CHECK(test.tenancies.busy().contains(Moving::kTo));
  CHECK(test.to().growth.take_wanted() == 1);
  CHECK(test.to().pool.held_blocks() == 0);
}

TEST_CASE("request moves: a quota that was lowered refuses the move") {
  Moving test(4);
  test.tenancies.set_quota({.tenant = test.old.tenant, .max_concurrent = 8, .max_blocks = 1});
  CHECK(test.refusal(Moving::kTo) == Errc::QuotaBlocks);
}

TEST_CASE("request moves: a finished move frees the old blocks and reports the rebind") {
  Moving test(4);
  auto move = test.moves.begin(test.sequence, Moving::kTo);
  REQUIRE(move);
  CHECK(move->copies.size() == 2);
  CHECK(test.old.pool.held_blocks() == 2);
  test.moves.finish(std::move(*move), Duration(5));
  CHECK(test.sequence.request.lease == Moving::kTo);
  CHECK(test.old.pool.held_blocks() == 0);
  CHECK(test.to().pool.held_blocks() == 2);
  CHECK(test.old.running == 0);
  CHECK(test.to().running == 1);
  CHECK(test.tenancies.busy().contains(Moving::kTo));
  const std::vector<SchedulerEvent> events = test.events.take();
  REQUIRE(events.size() == 1);
  const auto& rebound = std::get<Rebound>(events[0]);
  CHECK(rebound.old_lease == test.old.lease);
  CHECK(rebound.new_lease == Moving::kTo);
  CHECK(rebound.move_duration == Duration(5));
}

TEST_CASE("request moves: a sequence on a scavenger lease gives way to others from then on") {
  Moving test(4);
  test.to().is_scavenger = true;
  auto move = test.moves.begin(test.sequence, Moving::kTo);
  REQUIRE(move);
  test.moves.finish(std::move(*move), Duration(5));
  CHECK(test.sequence.is_scavenger);
  CHECK(test.to().account->scavenger_counter != nullptr);
}

TEST_CASE("request moves: an abandoned move frees the new blocks only") {
  Moving test(4);
  auto move = test.moves.begin(test.sequence, Moving::kTo);
  REQUIRE(move);
  test.moves.drop(std::move(*move));
  CHECK(test.to().pool.held_blocks() == 0);
  CHECK(test.tenancies.busy().contains(Moving::kTo));
  CHECK(test.old.pool.held_blocks() == 2);
  CHECK(test.sequence.request.lease == test.old.lease);
  CHECK(test.events.take().empty());
}

}  // namespace leasehold::testing
