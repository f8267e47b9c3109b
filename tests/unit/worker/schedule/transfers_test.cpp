// The list of copies that precede a step.
#include "worker/schedule/memory/transfers.hpp"

#include "tests/unit/worker/schedule/parts_fixture.hpp"

namespace leasehold::testing {
namespace {

SwapTransfer copy_of(Sequence& sequence, std::uint32_t block) {
  return {.sequence = &sequence,
          .copies = {{.from = {ExtentId{1}, block}, .to = {ExtentId{2}, 0}}}};
}

/// A running sequence in stop slot 0, and a swapped one in stop slot 1.
struct TwoSequences : PartsFixture {
  Tenancy& tenancy = lease(1, 4);
  Sequence& runs = run(tenancy, "runs", 4, 0);
  Sequence waits{request(tenancy, "waits", 4), kBlock};
  Transfers transfers{running};

  TwoSequences() { waits.stop_slot = 1; }
};

}  // namespace

TEST_CASE("transfers: a sequence's copies are made in the order in which they were listed") {
  TwoSequences test;
  test.transfers.add(copy_of(test.waits, 1));
  test.transfers.add(copy_of(test.runs, 2));
  test.transfers.add(copy_of(test.waits, 3));
  CHECK(test.transfers.take(test.waits).copies.front().from.index == 1);
  REQUIRE(test.transfers.all().size() == 2);
  CHECK(test.transfers.all()[0].sequence == &test.runs);
  CHECK(test.transfers.all()[1].copies.front().from.index == 3);
}

TEST_CASE("transfers: only the transfers of one sequence are dropped, and returned in order") {
  TwoSequences test;
  test.transfers.add(copy_of(test.waits, 1));
  test.transfers.add(copy_of(test.runs, 2));
  test.transfers.add(copy_of(test.waits, 3));
  const std::vector<SwapTransfer> dropped = test.transfers.drop(test.waits);
  REQUIRE(dropped.size() == 2);
  CHECK(dropped[0].copies.front().from.index == 1);
  CHECK(dropped[1].copies.front().from.index == 3);
  CHECK_FALSE(test.transfers.has(test.waits));
  CHECK(test.transfers.has(test.runs));
  CHECK(test.transfers.has_of(test.tenancy.lease));
}

TEST_CASE("transfers: a sequence of a transfer keeps its stop slot until the transfer is made") {
  TwoSequences test;
  CHECK(test.transfers.free_stop_slot() == 1);
  test.transfers.add(copy_of(test.waits, 1));
  CHECK(test.transfers.free_stop_slot() == 2);
  (void)test.transfers.take(test.waits);
  CHECK(test.transfers.free_stop_slot() == 1);
}

}  // namespace leasehold::testing
