#include "worker/serve/unread_output.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;

TEST_CASE("unread output: a connection that leaves too much unread gets no more") {
  const UnreadOutput unread;
  CHECK_FALSE(unread.excess({"ann"}, kMaxUnreadOutputBytesPerConnection));
  const auto error = unread.excess({"ann"}, kMaxUnreadOutputBytesPerConnection + 1);
  REQUIRE(error);
  CHECK(error->code == Errc::QueueFull);
}

TEST_CASE("unread output: a tenant with many unread connections leaves room for others") {
  UnreadOutput unread;
  const auto greedy = unread.meter_of({"greedy"});
  greedy->queued_bytes += kMaxUnreadOutputBytes / 2;
  greedy->total->queued_bytes += kMaxUnreadOutputBytes / 2;
  CHECK(unread.meter_of({"greedy"}) == greedy);
  CHECK(unread.excess({"greedy"}, 0).value().code == Errc::QueueFull);
  CHECK_FALSE(unread.excess({"ann"}, 0));
  greedy->queued_bytes -= 1;
  greedy->total->queued_bytes -= 1;
  CHECK_FALSE(unread.excess({"greedy"}, 0));
}
