#include "broker/server/lease_waits.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr ConnectionId kOther{3};

/// Leases of tenant "a" with calls that wait for them.
struct Waits : LeasedWorld {
  boost::asio::io_context io;
  int flushes = 0;
  LeaseWaits waits{io, state, clock, [this] { ++flushes; }};
  std::vector<wire::LeasesWaited> replies;

  std::optional<Errc> wait(std::vector<LeaseId> leases, bool until_free = false,
                           ConnectionId caller = kOperator, std::int64_t timeout_ms = 1'000) {
    control::Responder respond = [this](Result<control::Payload> reply) {
      if (reply) replies.push_back(wire::LeasesWaited::from_json(reply->body).value());
    };
    const auto added = waits.add(
        caller, {.leases = std::move(leases), .until_free = until_free, .timeout_ms = timeout_ms},
        respond);
    return added ? std::nullopt : std::optional(added.error().code);
  }
  void revoke_and_poll(LeaseId which) {
    revoke(which);
    waits.poll();
  }
};

}  // namespace

TEST_CASE("lease waits: a call is answered when its last lease is fenced, with their views") {
  Waits world;
  const LeaseId second = world.acquired("a");
  world.acquired("a");  // is of no interest
  REQUIRE_FALSE(world.wait({second, world.lease}));
  world.begin_unit(world.worker, Touches::TenantMemory);  // no proof yet
  world.revoke_and_poll(world.lease);
  world.revoke_and_poll(second);
  CHECK(world.replies.empty());
  world.end_unit(world.worker);
  world.advance(1ms);
  world.waits.poll();
  REQUIRE(world.replies.size() == 1);
  const wire::LeasesWaited& reply = world.replies.front();
  REQUIRE(reply.items.size() == 2);
  CHECK(reply.open == 0);
  CHECK_FALSE(reply.oldest_open);
  CHECK(reply.items[0].lease == second);
  CHECK(reply.items[1].lease == world.lease);
  CHECK(reply.items[1].proof == "LaunchQuiet");
  CHECK(world.waits.waiting() == 0);
}

TEST_CASE("lease waits: a call about leases that are over is answered at once") {
  Waits world;
  world.revoke(world.lease);
  REQUIRE_FALSE(world.wait({world.lease}));
  CHECK(world.replies.at(0).items.at(0).state == LeaseState::Fenced);
}

TEST_CASE("lease waits: until_free waits for the memory as well, but not for quarantined memory") {
  Waits world;
  world.workers_answer = false;
  const bool is_touched = GENERATE(false, true);
  if (is_touched) world.touched.insert(world.extent);
  REQUIRE_FALSE(world.wait({world.lease}, true));
  REQUIRE_FALSE(world.wait({world.lease}));
  world.revoke_and_poll(world.lease);
  CHECK(world.replies.size() == 1);  // the one that waits for the fence
  world.answer_unmap();
  world.waits.poll();
  REQUIRE(world.replies.size() == 2);
  CHECK(world.replies[1].items.at(0).quarantined_extents == (is_touched ? 1 : 0));
}

TEST_CASE("lease waits: effects that wait are performed before a call times out") {
  Waits world;
  REQUIRE_FALSE(world.wait({world.lease}, false, kOperator, 1));
  world.advance(1ms);
  world.io.run();
  CHECK(world.flushes == 1);
  CHECK(world.replies.size() == 1);
}

TEST_CASE("lease waits: after the timeout the reply names the open lease that was revoked first") {
  Waits world;
  const LeaseId live = world.acquired("a");
  const LeaseId fenced = world.acquired("a");
  const LeaseId first = world.acquired("a");
  world.revoke(fenced);
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(first);
  world.advance(1ms);
  world.revoke(world.lease);
  REQUIRE_FALSE(world.wait({live, world.lease, fenced, first}, false, kOperator, 50));
  world.advance(49ms);
  world.waits.poll();
  CHECK(world.replies.empty());
  world.advance(1ms);
  world.waits.poll();
  REQUIRE(world.replies.size() == 1);
  CHECK(world.replies[0].open == 3);
  CHECK(world.replies[0].items.at(0).lease == fenced);
  CHECK(world.replies[0].oldest_open.value().lease == first);
}

TEST_CASE("lease waits: a lease whose slot is used again is over, and how it ended is not known") {
  Waits world;
  REQUIRE_FALSE(world.wait({world.lease}));
  world.revoke(world.lease);
  while (world.state.leases.in_slot(world.lease.slot)->id() == world.lease)
    world.revoke(world.acquired("a"));
  world.waits.poll();
  const wire::LeaseView view = world.replies.at(0).items.at(0);
  CHECK(view.lease == world.lease);
  CHECK(view.state == LeaseState::Fenced);
  CHECK(view.reason == RevokeReason::None);
}

TEST_CASE("lease waits: with a worker, its leases that were revoked before are waited for") {
  Waits world;
  const LeaseId revoked = world.acquired("a");
  world.begin_unit(world.worker, Touches::TenantMemory);  // delays the fence
  world.revoke(revoked);
  control::Responder respond = [&world](Result<control::Payload> reply) {
    world.replies.push_back(wire::LeasesWaited::from_json(reply->body).value());
  };
  world.waits.add(kOperator, {.leases = {}, .worker = "w0", .timeout_ms = 1'000}, respond).value();
  CHECK(world.replies.empty());
  world.end_unit(world.worker);
  world.advance(1ms);
  world.waits.poll();
  REQUIRE(world.replies.size() == 1);
  REQUIRE(world.replies[0].items.size() == 1);
  CHECK(world.replies[0].items[0].lease == revoked);
}

TEST_CASE("lease waits: leases that were never granted are refused") {
  Waits world;
  const LeaseId next{.slot = world.lease.slot, .generation = world.lease.generation + 1};
  CHECK(world.wait({world.lease, next}) == Errc::UnknownLease);
  CHECK(world.wait({{.slot = 1'000'000, .generation = 1}}) == Errc::UnknownLease);
  CHECK(world.waits.waiting() == 0);
}

TEST_CASE("lease waits: the calls are bounded, and those of a closed connection are dropped") {
  Waits world;
  REQUIRE_FALSE(world.wait({world.lease}, false, kOther));
  for (std::size_t i = 1; i < LeaseWaits::kMaxWaiting; ++i)
    REQUIRE_FALSE(world.wait({world.lease}));
  CHECK(world.wait({world.lease}) == Errc::QueueFull);
  world.waits.forget(kOther);
  CHECK(world.waits.waiting() == LeaseWaits::kMaxWaiting - 1);
  CHECK_FALSE(world.wait({world.lease}));
  world.waits.forget(kOperator);
  CHECK(world.waits.waiting() == 0);
  world.revoke_and_poll(world.lease);
  CHECK(world.replies.empty());
}
