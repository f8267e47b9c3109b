// The limit on replacing revoked leases.
#include <catch2/catch.hpp>
#include <random>

#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

/// The tenant "a" may replace two leases at once and then one per second.
struct LimitedWorld : ServingWorld {
  LimitedWorld() { limit(60, 2); }

  void limit(std::uint32_t per_minute, std::uint32_t burst) {
    call(kOperator, wire::TenantAdmit{.tenant = {"a"},
                                      .max_blocks = 1024,
                                      .rebinds_per_minute = per_minute,
                                      .rebind_burst = burst});
  }
  CallId replace(std::optional<LeaseId> old) {
    return call(kHolder, wire::LeaseAcquire{.tenant = {"a"}, .blocks = 8, .replaces = old});
  }
  LeaseId replaced(std::optional<LeaseId> old) {
    return answer<wire::LeaseAcquired>(replace(old)).lease;
  }
  /// Revokes and replaces a lease until no token is left; returns the last one, revoked.
  LeaseId spend_burst(bool names_old) {
    LeaseId lease = acquired("a");
    for (int i = 0; i < 2; ++i) {
      revoke(lease);
      lease = replaced(names_old ? std::optional(lease) : std::nullopt);
    }
    revoke(lease);
    return lease;
  }
};

}  // namespace

TEST_CASE("rebind limit: beyond the burst a rebind is refused with the time until the next") {
  LimitedWorld world;
  const bool names_old = GENERATE(true, false);
  const LeaseId last = world.spend_burst(names_old);
  const auto old = names_old ? std::optional(last) : std::nullopt;

  const CallId refused = world.replace(old);

  REQUIRE(world.refusal(refused) == Errc::RebindRateLimited);
  const Error error = world.answers.at(refused).error();
  CHECK(error.retry_after_ms == 1001);
  CHECK(error.detail ==
        "tenant a exceeds its rebind limit, 2 at once and 60 per minute; retry in 1001 ms");
  world.advance(std::chrono::milliseconds(error.retry_after_ms));
  world.replaced(old);
  CHECK(world.record(last).is(LeaseState::Fenced));
}

TEST_CASE("rebind limit: an acquire that follows no revocation is never limited") {
  LimitedWorld world;
  world.spend_burst(true);
  world.replace(std::nullopt);
  world.advance(RebindLimiter::kWindow + 1s);
  world.limit(1, 1);  // no token comes back while the test runs
  world.replaced(LeaseId{0, 1});

  for (int i = 0; i < 5; ++i) {
    const LeaseId lease = world.acquired("a");
    world.call(kHolder, wire::LeaseRelease{.lease = lease});
  }
  world.acquired("a", 8, ConnectionId{77});
  world.post(ConnectionClosed{ConnectionId{77}});
  world.acquired("a");
  world.admit_tenant("b");
  world.acquired("b");
}

TEST_CASE("rebind limit: a revocation makes one acquire a rebind, named or not") {
  LimitedWorld world;
  const LeaseId first = world.acquired("a");
  const LeaseId second = world.acquired("a");
  world.revoke(first);
  world.revoke(second);
  world.replaced(second);
  world.replaced(std::nullopt);  // counts as the replacement of `first`

  world.acquired("a");
  CHECK(world.refusal(world.replace(first)) == Errc::RebindRateLimited);
}

TEST_CASE("rebind limit: a lease that expired counts like a revoked one") {
  LimitedWorld world;
  world.limit(1, 1);
  world.acquired("a");
  world.advance(10s);
  world.acquired("a");
  world.advance(10s);

  CHECK(world.refusal(world.acquire("a")) == Errc::RebindRateLimited);
}

TEST_CASE("rebind limit: a refusal for another reason takes no token") {
  LimitedWorld world;
  const LeaseId lease = world.acquired("a");
  world.revoke(lease);
  for (int i = 0; i < 5; ++i) {
    CHECK(world.refusal(world.call(
              kHolder, wire::LeaseAcquire{.tenant = {"a"}, .blocks = 1024, .replaces = lease})) ==
          Errc::BadRequest);
  }

  world.replaced(lease);
  world.replaced(lease);
  CHECK(world.refusal(world.replace(lease)) == Errc::RebindRateLimited);
}

TEST_CASE("rebind limit: an acquire that fails after the grant was sent gives its token back") {
  LimitedWorld world;
  world.limit(1, 2);  // no token comes back while the test runs
  const bool names_old = GENERATE(true, false);
  const LeaseId lease = world.acquired("a");
  world.revoke(lease);
  const auto old = names_old ? std::optional(lease) : std::nullopt;
  for (int i = 0; i < 5; ++i) {
    world.disk_full = true;
    CHECK(world.refusal(world.replace(old)) == Errc::DiskFull);
    world.disk_full = false;
    world.workers_answer = false;
    const CallId refused = world.replace(old);
    world.answer_grant(false);
    world.workers_answer = true;
    CHECK(world.refusal(refused) == Errc::OutOfMemory);
  }

  world.revoke(world.replaced(old));
  world.revoke(world.replaced(std::nullopt));
  CHECK(world.refusal(world.replace(std::nullopt)) == Errc::RebindRateLimited);
}

TEST_CASE("rebind limit: an acquire whose worker is lost gives its token back") {
  LimitedWorld world;
  world.limit(1, 1);
  const LeaseId lease = world.acquired("a");
  world.revoke(lease);
  world.workers_answer = false;
  const CallId lost = world.replace(lease);
  world.post(ConnectionClosed{kWorkerSocket});
  CHECK(world.refusal(lost) == Errc::LeaseRevoked);

  world.workers_answer = true;
  world.attach_worker("w1", ConnectionId{11});
  world.revoke(world.replaced(lease));
  CHECK(world.refusal(world.replace(std::nullopt)) == Errc::RebindRateLimited);
}

TEST_CASE("rebind limit: a holder that ends its own acquire has spent the token") {
  LimitedWorld world;
  world.limit(1, 1);
  const LeaseId lease = world.acquired("a");
  world.revoke(lease);
  world.workers_answer = false;
  world.call(ConnectionId{77}, wire::LeaseAcquire{.tenant = {"a"}, .blocks = 8, .replaces = lease});
  world.post(ConnectionClosed{ConnectionId{77}});

  CHECK(world.refusal(world.replace(lease)) == Errc::RebindRateLimited);
}

TEST_CASE("rebind limit: a changed policy keeps the tokens that are left") {
  LimitedWorld world;
  const LeaseId last = world.spend_burst(true);

  world.limit(60, 100);
  CHECK(world.refusal(world.replace(last)) == Errc::RebindRateLimited);
  world.limit(6'000'000, 100);
  world.advance(1ms);
  for (int i = 0; i < 10; ++i) world.replaced(last);
}

TEST_CASE("rebind limit: the policy survives a broker restart") {
  LimitedWorld before;
  before.limit(30, 1);
  World after(before, {});
  const auto& policy = after.state.tenants.find({"a"})->policy;
  CHECK(policy.rebinds_per_minute == 30);
  CHECK(policy.rebind_burst == 1);
}

TEST_CASE("rebind limit: in any time t at most burst + rate * t rebinds are granted") {
  const auto seed = GENERATE(range(1u, 33u));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const Rate rate{.per_second = std::uniform_int_distribution(1, 6000)(random) / 60.0,
                  .burst = static_cast<double>(std::uniform_int_distribution(1, 20)(random))};
  TimePoint now{5};
  RebindLimiter limiter(rate, now);
  std::vector<TimePoint> granted;
  std::size_t refused = 0;
  for (std::uint64_t i = 1; i <= 2000; ++i) {
    const double longest_s = (random() % 8 == 0 ? 3.0 : 0.5) / rate.per_second;
    const std::chrono::duration<double> pause(
        std::uniform_real_distribution(0.0, longest_s)(random));
    now = now + std::chrono::duration_cast<Duration>(pause);
    const LeaseId old{1, i};
    limiter.note_revoked(old, RevokeReason::Operator, now);
    const auto named = random() % 2 == 0 ? std::optional(old) : std::nullopt;
    const auto token = limiter.take(named, now);
    if (!token) {
      ++refused;
      if (random() % 4 != 0) continue;
      now = now + token.error();  // obeys
      REQUIRE(limiter.take(named, now));
    }
    granted.push_back(now);
  }

  REQUIRE(refused > 0);
  const auto is_allowed = [&](std::size_t first, std::size_t last) {
    const std::chrono::duration<double> t = granted[last] - granted[first];
    return static_cast<double>(last - first + 1) <= rate.burst + rate.per_second * t.count() + 1e-6;
  };
  for (std::size_t first = 0; first < granted.size(); ++first) {
    for (std::size_t last = first; last < granted.size(); ++last) {
      if (!is_allowed(first, last)) FAIL("too many from grant " << first << " to " << last);
    }
  }
}

TEST_CASE("live tenants: a tenant whose lease is revoked is live until it replaces it") {
  LimitedWorld world;
  const auto live = [&] { return status_view(world.state, world.clock.now()).tenants_live; };
  CHECK(live() == 0);
  const LeaseId first = world.acquired("a");
  CHECK(live() == 1);
  world.revoke(first);
  CHECK(live() == 1);
  const LeaseId second = world.replaced(first);
  CHECK(live() == 1);
  world.call(kHolder, wire::LeaseRelease{.lease = second});
  CHECK(live() == 0);
}

TEST_CASE("live tenants: one that does not replace its lease within a minute is not live") {
  LimitedWorld world;
  world.revoke(world.acquired("a"));
  world.clock.advance(RebindLimiter::kWindow + 1ns);
  CHECK(status_view(world.state, world.clock.now()).tenants_live == 0);
}

TEST_CASE("rebinds: one that is reported after its new lease has ended is counted") {
  LimitedWorld world;
  const LeaseId old = world.acquired("a");
  world.revoke(old);
  const LeaseId fresh = world.replaced(old);
  world.call(kHolder, wire::LeaseRelease{.lease = fresh});
  const events::Rebind late{.tenant = "a", .request = {"r"}, .old_lease = old, .new_lease = fresh};
  world.post(WorkerReported{kWorkerSocket, {.event = late, .at = world.clock.now()}});
  const auto status = status_view(world.state, world.clock.now());
  CHECK(status.rebinds.at(0).rebinds.since_start.count == 1);
}
