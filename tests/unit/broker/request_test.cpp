#include <catch2/catch.hpp>

#include "tests/unit/broker/world.hpp"

using namespace leasehold;

namespace {

wire::LeaseAcquire asking(std::uint32_t blocks) {
  return {.tenant = {"a"}, .blocks = blocks, .request_id = {"req-1"}};
}

}  // namespace

TEST_CASE("request id: the same call gets the same lease, not a second one") {
  ServingWorld world;
  const auto first = world.answer<wire::LeaseAcquired>(world.call(kHolder, asking(8)));
  const auto second = world.answer<wire::LeaseAcquired>(world.call(kHolder, asking(8)));
  CHECK(first.lease == second.lease);
  CHECK(first.token == second.token);
  CHECK(world.state.extents.records().size() == 1);
}

TEST_CASE("request id: other parameters are a conflict") {
  ServingWorld world;
  world.call(kHolder, asking(8));
  CHECK(world.refusal(world.call(kHolder, asking(16))) == Errc::RequestIdConflict);
}

TEST_CASE("request id: a call repeated while the first is in progress gets the same answer") {
  ServingWorld world;
  world.workers_answer = false;
  const CallId first = world.call(kHolder, asking(8));
  const CallId second = world.call(kHolder, asking(8));
  CHECK(world.grants.size() == 1);
  world.answer_grant();
  CHECK(world.answer<wire::LeaseAcquired>(first).lease ==
        world.answer<wire::LeaseAcquired>(second).lease);
}

TEST_CASE("request id: users have separate ids") {
  ServingWorld world;
  const auto mine = world.answer<wire::LeaseAcquired>(world.call(kHolder, asking(8), 1));
  const auto hers = world.answer<wire::LeaseAcquired>(world.call(kHolder, asking(8), 2));
  CHECK(mine.lease != hers.lease);
}

TEST_CASE("request id: a retryable refusal is not cached, a final one is") {
  ServingWorld world;
  const auto all = world.acquired("a", 128);
  CHECK(world.refusal(world.call(kHolder, asking(8))) == Errc::PoolExhausted);
  world.revoke(all);
  CHECK(world.answers.at(world.call(kHolder, asking(8))).has_value());

  wire::LeaseAcquire unknown{.tenant = {"b"}, .blocks = 8, .request_id = {"req-2"}};
  world.call(kHolder, unknown);
  world.admit_tenant("b");
  CHECK(world.refusal(world.call(kHolder, unknown)) == Errc::UnknownTenant);
}

TEST_CASE("request id: the newest 4096 are cached, and no pending call is evicted") {
  RequestBook book;
  const auto caller = [](std::uint64_t number) {
    return Caller{
        .call = CallId{number}, .request_id = {"r" + std::to_string(number)}, .fingerprint = "f"};
  };
  book.begin(caller(1));  // never answered
  for (std::uint64_t i = 2; i <= RequestBook::kMaxEntries + 2; ++i) {
    book.begin(caller(i));
    book.finish(CallId{i}, Answer{});
  }
  CHECK(std::holds_alternative<RequestBook::Joined>(book.begin(caller(1))));
  CHECK(std::holds_alternative<RequestBook::New>(book.begin(caller(2))));
  CHECK(std::holds_alternative<RequestBook::Replayed>(book.begin(caller(4000))));
}

TEST_CASE("request id: one user's calls evict no other user's answer") {
  RequestBook book;
  const Caller mine{.call = CallId{1}, .uid = 1, .request_id = {"mine"}, .fingerprint = "f"};
  book.begin(mine);
  book.finish(mine.call, Answer{});
  for (std::uint64_t i = 2; i <= 2 * RequestBook::kMaxEntries; ++i) {
    book.begin({.call = CallId{i}, .uid = 2, .request_id = {std::to_string(i)}});
    book.finish(CallId{i}, Answer{});
  }
  CHECK(std::holds_alternative<RequestBook::Replayed>(book.begin(mine)));
}

TEST_CASE("request id: renewals do not evict the answer of an acquire") {
  ServingWorld world;
  const auto first = world.answer<wire::LeaseAcquired>(world.call(kHolder, asking(8)));
  for (std::size_t i = 0; i <= RequestBook::kMaxEntries; ++i) {
    world.call(kHolder, wire::LeaseRenew{.lease = first.lease});
    world.forget_effects();
  }
  const auto again = world.answer<wire::LeaseAcquired>(world.call(kHolder, asking(8)));
  CHECK(again.lease == first.lease);
}

TEST_CASE("request id: the answer that names a lease is kept as long as the lease") {
  ServingWorld world;
  const auto first = world.answer<wire::LeaseAcquired>(world.call(kHolder, asking(8)));
  const auto ask_much = [&] {
    for (std::size_t i = 0; i <= RequestBook::kMaxEntries; ++i) {
      world.call(kHolder, wire::LeaseRelease{.lease = {63, 7}});
      world.forget_effects();
    }
  };
  ask_much();
  CHECK(world.answer<wire::LeaseAcquired>(world.call(kHolder, asking(8))).lease == first.lease);

  world.revoke(first.lease);
  ask_much();
  CHECK(world.answer<wire::LeaseAcquired>(world.call(kHolder, asking(8))).lease != first.lease);
}

TEST_CASE("request id: an answer can be evicted once its lease is closed") {
  RequestBook book;
  const LeaseId lease{3, 4};
  const Caller mine{.call = CallId{1}, .uid = 1, .request_id = {"mine"}, .fingerprint = "f"};
  book.begin(mine);
  book.finish(mine.call, Answer{wire::LeaseAcquired{.lease = lease}});
  const auto ask = [&](std::uint64_t from) {
    for (std::uint64_t i = from; i < from + RequestBook::kMaxEntries; ++i) {
      book.begin({.call = CallId{i}, .uid = 1, .request_id = {std::to_string(i)}});
      book.finish(CallId{i}, Answer{});
    }
  };
  ask(2);
  book.release({.uid = 1, .request_id = "mine"}, LeaseId{3, 3});  // of another lease
  ask(10'000);
  CHECK(std::holds_alternative<RequestBook::Replayed>(book.begin(mine)));

  book.release({.uid = 1, .request_id = "mine"}, lease);
  ask(20'000);
  CHECK(std::holds_alternative<RequestBook::New>(book.begin(mine)));
}
