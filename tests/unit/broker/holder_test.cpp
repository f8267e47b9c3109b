// Holders of leases: repeated calls, lifetimes, and workers that do not answer.
#include <catch2/catch.hpp>

#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr ConnectionId kHolderAgain{20};

struct Holders : ServingWorld {
  /// Repeats the call on this connection, as after a lost reply.
  CallId ask(ConnectionId connection, const std::string& request = "same") {
    return call(connection,
                wire::LeaseAcquire{.tenant = {"a"}, .blocks = 8, .request_id = {request}});
  }
  /// The worker does not answer until the caller has timed out.
  void time_out_grant(const effect::SendGrant& sent) {
    post(GrantAnswered{sent.grant.lease, sent.grant.extents, Error{Errc::TimedOut, "no answer"},
                       true});
  }
};

Error silent() {
  return {Errc::TimedOut, "no answer"};
}

}  // namespace

TEST_CASE("acquire: repeating it on a new connection of the same user moves the lease there") {
  Holders world;
  const auto first = world.answer<wire::LeaseAcquired>(world.ask(kHolder));
  world.advance(3s);

  const auto again = world.answer<wire::LeaseAcquired>(world.ask(kHolderAgain));

  CHECK(again.lease == first.lease);
  CHECK(again.token == first.token);
  const CallId renew = world.call(kHolderAgain, wire::LeaseRenew{.lease = first.lease});
  CHECK_NOTHROW(world.answer<wire::LeaseRenewed>(renew));
  CHECK(world.refusal(world.call(kHolder, wire::LeaseRenew{.lease = first.lease})) ==
        Errc::UnknownLease);
  world.post(ConnectionClosed{kHolder});
  CHECK(world.record(first.lease).is(LeaseState::Live));
  world.post(ConnectionClosed{kHolderAgain});
  CHECK(reason_of(world.record(first.lease).lease) == RevokeReason::HolderGone);
}

TEST_CASE("acquire: repeating it after the lease has ended is an error") {
  Holders world;
  const LeaseId lease = world.answer<wire::LeaseAcquired>(world.ask(kHolder)).lease;
  world.workers_answer = false;
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.post(ConnectionClosed{kHolder});

  CHECK(world.refusal(world.ask(kHolderAgain)) == Errc::LeaseRevoked);
  world.end_unit(world.worker);
  CHECK(world.refusal(world.ask(kHolderAgain)) == Errc::LeaseFenced);
  CHECK(world.record(lease).is(LeaseState::Fenced));
}

TEST_CASE("acquire: repeating it while the worker maps makes the newest caller the holder") {
  Holders world;
  world.workers_answer = false;
  const CallId first = world.ask(kHolder);
  const CallId second = world.ask(kHolderAgain);
  world.post(ConnectionClosed{kHolder});

  world.answer_grant();

  const LeaseId lease = world.answer<wire::LeaseAcquired>(second).lease;
  CHECK(world.answer<wire::LeaseAcquired>(first).lease == lease);
  CHECK(world.record(lease).is(LeaseState::Live));
  CHECK(world.record(lease).holder == kHolderAgain);
}

namespace {

/// The notices sent to holders.
std::vector<effect::NotifyHolder> notices(const World& world) {
  return world.performed<effect::NotifyHolder>();
}

}  // namespace

TEST_CASE("revoked: the holder gets a notice at once, after the words are stored") {
  LeasedWorld world;
  world.begin_unit(world.worker, Touches::TenantMemory);  // no proof yet
  world.forget_effects();

  world.revoke(world.lease);

  REQUIRE(notices(world).size() == 1);
  CHECK(notices(world)[0].holder == kHolder);
  CHECK(notices(world)[0].revoked.lease == world.lease);
  CHECK(notices(world)[0].revoked.scope == wire::LeaseScope::Tenant);
  CHECK(notices(world)[0].revoked.reason == RevokeReason::Operator);
  const auto is_stored = [](const Effect& effect) {
    return std::holds_alternative<effect::StoreWords>(effect);
  };
  const auto is_notice = [](const Effect& effect) {
    return std::holds_alternative<effect::NotifyHolder>(effect);
  };
  CHECK(std::ranges::find_if(world.effects, is_stored) <
        std::ranges::find_if(world.effects, is_notice));
}

TEST_CASE("revoked: the holder gets a notice of an expired lease, and none of one that it ended") {
  LeasedWorld world;
  world.advance(10s);
  REQUIRE(notices(world).size() == 1);
  CHECK(notices(world)[0].revoked.reason == RevokeReason::TtlExpired);

  world.forget_effects();
  world.call(kHolder, wire::LeaseRelease{.lease = world.acquired("a")});
  world.acquired("a");
  world.post(ConnectionClosed{kHolder});
  CHECK(notices(world).empty());
}

TEST_CASE("revoked: the holder of a drained lease gets a notice when the lease ends") {
  LeasedWorld world;
  world.call(kOperator, wire::LeaseDrain{.lease = world.lease});
  CHECK(notices(world).empty());
  world.call(kWorkerSocket, wire::LeaseDrained{.lease = world.lease});
  REQUIRE(notices(world).size() == 1);
  CHECK(notices(world)[0].revoked.reason == RevokeReason::Released);
}

TEST_CASE("revoked: an acquire that was not answered gets its error and no notice") {
  ServingWorld world;
  world.workers_answer = false;
  const CallId call = world.acquire("a");
  world.call(kOperator, wire::LeaseRevoke{.tenant = TenantId{"a"}});

  CHECK(world.refusal(call) == Errc::LeaseRevoked);
  CHECK(notices(world).empty());
}

TEST_CASE("query: the holder and operators see the lease in every state") {
  LeasedWorld world;
  const ConnectionId caller = GENERATE(kHolder, kOperator);
  const auto status = [&] {
    return world.answer<wire::LeaseStatus>(
        world.call(caller, wire::LeaseQuery{.lease = world.lease}));
  };
  CHECK(status().state == LeaseState::Live);
  CHECK(status().reason == RevokeReason::None);
  CHECK(status().blocks == 8);
  CHECK(status().deadline_boottime_ns == world.record(world.lease).deadline.boottime_ns);

  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(world.lease);
  CHECK(status().state == LeaseState::Revoked);
  CHECK(status().reason == RevokeReason::Operator);
  CHECK(status().blocks == 8);

  world.end_unit(world.worker);
  CHECK(status().state == LeaseState::Fenced);
  CHECK(status().blocks == 0);
}

TEST_CASE("holder: each call about another's lease is answered as if it was never granted") {
  LeasedWorld world;
  world.state.leases.start_above(63, 5);
  const LeaseId never{60, 9};
  const LeaseId stale{63, 4};
  const std::string token = "v1:0.1:a:00";
  const auto refused = [&](LeaseId lease, int method) {
    const ConnectionId other{77};
    const auto ask = [&](const auto& message) {
      return world.answers.at(world.call(other, message, 1001)).error();
    };
    Error error = method == 0   ? ask(wire::LeaseRenew{.lease = lease})
                  : method == 1 ? ask(wire::LeaseRelease{.lease = lease})
                  : method == 2 ? ask(wire::LeaseGrow{.lease = lease})
                  : method == 3 ? ask(wire::LeaseShrink{.lease = lease})
                  : method == 4 ? ask(wire::LeaseReplace{.lease = lease})
                  : method == 5 ? ask(wire::LeaseHold{.lease = lease, .token = token})
                  : method == 6 ? ask(wire::LeaseGrow{.lease = lease, .pool = MemoryPool::Swap})
                                : ask(wire::LeaseAcquire{.tenant = {"b"}, .replaces = lease});
    const std::string id = to_string(lease);
    REQUIRE(error.detail.contains(id));
    error.detail.replace(error.detail.find(id), id.size(), "");
    return error;
  };
  world.admit_tenant("b");
  for (int method = 0; method < 8; ++method) {
    CAPTURE(method);
    const Error unknown = refused(never, method);
    CHECK(unknown.code == (method == 5 ? Errc::BadToken : Errc::UnknownLease));
    CHECK(refused(world.lease, method) == unknown);
    if (method < 7) CHECK(refused(stale, method) == unknown);
  }
  const LeaseId ended = world.lease;
  world.revoke(ended);
  for (int method = 0; method < 8; ++method) {
    CAPTURE(method);
    CHECK(refused(ended, method) == refused(never, method));
  }
}

TEST_CASE("holder: an acquire for another user's tenant is answered as one for no tenant") {
  LeasedWorld world;
  world.call(kOperator, wire::TenantAdmit{.tenant = {"hers"}, .max_blocks = 64, .uid = 1001});
  const auto refused = [&](const std::string& tenant) {
    return world.answers.at(world.call(kHolder, wire::LeaseAcquire{.tenant = {tenant}}, 1002))
        .error();
  };
  const Error foreign = refused("hers");
  CHECK(foreign.code == Errc::UnknownTenant);
  CHECK_FALSE(foreign.detail.contains("1001"));
  CHECK(refused("none").detail == std::string(foreign.detail).replace(10, 4, "none"));
  CHECK(refused("none").code == foreign.code);
}

TEST_CASE("query: a tenant gets the same answer for another's lease and for one never granted") {
  LeasedWorld world;
  const ConnectionId other{77};
  const LeaseId ended = world.lease;
  const auto error = [&](ConnectionId caller, LeaseId lease) {
    const Error found =
        world.answers.at(world.call(caller, wire::LeaseQuery{.lease = lease}, 1001)).error();
    const std::string id = to_string(lease);
    CHECK(found.detail.find(id) != std::string::npos);
    return Error{found.code,
                 std::string(found.detail).replace(found.detail.find(id), id.size(), "")};
  };
  const Error unknown = error(other, {60, 9});
  CHECK(unknown.code == Errc::UnknownLease);
  CHECK(error(other, world.lease) == unknown);

  world.revoke(ended);
  CHECK(error(other, ended) == unknown);
  world.state.leases.start_above(63, 5);
  CHECK(error(other, {63, 4}) == unknown);
  CHECK(world.refusal(world.call(kOperator, wire::LeaseQuery{.lease = {63, 4}})) ==
        Errc::StaleGeneration);
}

TEST_CASE("max_lifetime: renewals end there, and so does the lease") {
  ServingWorld world;
  world.call(kOperator,
             wire::TenantAdmit{.tenant = {"a"}, .ttl_ms = 10'000, .max_lifetime_ms = 25'000});
  const LeaseId lease = world.acquired("a");
  const TimePoint granted = world.clock.now();
  const auto renew = [&] {
    const CallId call = world.call(kHolder, wire::LeaseRenew{.lease = lease});
    return TimePoint{world.answer<wire::LeaseRenewed>(call).deadline_boottime_ns} - granted;
  };

  world.advance(9s);
  CHECK(renew() == 19s);
  world.advance(9s);
  CHECK(renew() == 25s);
  world.advance(6s);
  CHECK(renew() == 25s);
  CHECK(world.record(lease).is(LeaseState::Live));
  world.advance(1s);
  CHECK(reason_of(world.record(lease).lease) == RevokeReason::TtlExpired);
}

TEST_CASE("max_lifetime: a value below the TTL bounds the first deadline") {
  ServingWorld world;
  world.call(kOperator,
             wire::TenantAdmit{.tenant = {"a"}, .ttl_ms = 10'000, .max_lifetime_ms = 4'000});
  const LeaseId lease = world.acquired("a");
  CHECK(world.record(lease).deadline - world.clock.now() == 4s);
}

TEST_CASE("grow: extents mapped after the caller's timeout are reclaimed") {
  Holders world;
  const LeaseId lease = world.acquired("a");
  world.workers_answer = false;
  const CallId grow = world.call(kHolder, wire::LeaseGrow{.lease = lease, .extents = 2});
  const effect::SendGrant sent = world.grants.front();
  world.time_out_grant(sent);
  CHECK(world.refusal(grow) == Errc::TimedOut);
  CHECK(world.record(lease).charged_blocks == 24);  // the worker may have mapped them

  world.answer_grant();

  REQUIRE(world.reclaims.size() == 1);
  CHECK(world.reclaims.front().count == 2);
  world.post(ReclaimAnswered{lease, world.reclaims.front().call, sent.grant.extents});
  CHECK(world.record(lease).charged_blocks == 8);
  CHECK(world.record(lease).extents.size() == 1);
  CHECK(world.state.extents.free_extents() == 15);
  CHECK(world.record(lease).calls.grants_in_flight == 0);
}

TEST_CASE("grow: a late refusal lowers the charge again") {
  Holders world;
  const LeaseId lease = world.acquired("a");
  world.workers_answer = false;
  world.call(kHolder, wire::LeaseGrow{.lease = lease, .extents = 2});
  world.time_out_grant(world.grants.front());

  world.answer_grant(false);

  CHECK(world.reclaims.empty());
  CHECK(world.record(lease).charged_blocks == 8);
  CHECK(world.state.extents.free_extents() == 15);
}

TEST_CASE("shrink: extents returned after the caller's timeout are accepted") {
  Holders world;
  const LeaseId lease = world.answer<wire::LeaseAcquired>(world.acquire("a", 24)).lease;
  const CallId shrink = world.call(kHolder, wire::LeaseShrink{.lease = lease, .extents = 2});
  const CallId asked = world.reclaims.front().call;
  const std::vector<ExtentId> given{world.record(lease).extents.begin(),
                                    world.record(lease).extents.begin() + 2};

  world.post(ReclaimAnswered{lease, asked, std::unexpected(silent())});
  CHECK(world.refusal(shrink) == Errc::TimedOut);
  CHECK(world.record(lease).charged_blocks == 24);
  world.post(ReclaimAnswered{lease, asked, given});

  CHECK(world.record(lease).charged_blocks == 8);
  CHECK(world.state.extents.free_extents() == 15);
  world.post(ReclaimAnswered{lease, asked, given});  // the second reply has no effect
  CHECK(world.record(lease).extents.size() == 1);
}

TEST_CASE("shrink: a revocation answers the shrink in flight") {
  Holders world;
  const LeaseId lease = world.answer<wire::LeaseAcquired>(world.acquire("a", 24)).lease;
  const CallId shrink = world.call(kHolder, wire::LeaseShrink{.lease = lease, .extents = 2});
  const std::vector<ExtentId> given{world.record(lease).extents.back()};
  world.begin_unit(world.worker, Touches::TenantMemory);

  world.call(kOperator, wire::LeaseRevoke{.lease = lease});
  CHECK(world.refusal(shrink) == Errc::LeaseRevoked);

  // The worker's answer arrives too late to shrink the lease, and no call is answered again.
  world.post(ReclaimAnswered{lease, shrink, given});
  CHECK(world.record(lease).is(LeaseState::Revoked));
  CHECK(world.record(lease).extents.size() == 3);
}

TEST_CASE("acquire: PoolExhausted says whether waiting can help") {
  Holders world;
  world.admit_tenant("big", 1 << 20);
  const auto detail = [&](std::uint32_t blocks) {
    return world.answers.at(world.acquire("big", blocks)).error().detail;
  };
  world.acquired("a");

  CHECK(detail(16 * 8).find("retry when leases end") != std::string::npos);
  CHECK(detail(17 * 8).find("never fit") != std::string::npos);
  CHECK(world.refusal(world.acquire("big", 17 * 8)) == Errc::BadRequest);  // final for clients

  const LeaseId lease = world.acquired("a");
  world.touched.insert(world.record(lease).extents.at(0));
  world.revoke(lease);
  world.caller_pid = 1001;  // an untrusted worker gets no grants
  world.attach_worker("w1", ConnectionId{11});
  CHECK(detail(16 * 8).find("brokerctl quarantine list") != std::string::npos);
  CHECK(world.refusal(world.acquire("big", 16 * 8)) == Errc::PoolExhausted);
}
