#include "worker/serve/connection_limiter.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr uid_t kAnn = 1000;
constexpr uid_t kBob = 1001;
constexpr TimePoint kStart{0};

constexpr ConnectionLimits kSmall{.unauthenticated_places = 8,
                                  .tenant_places = 8,
                                  .authentication_timeout = 5s,
                                  .unauthenticated_lines = {.per_second = 10, .burst = 20},
                                  .max_unauthenticated_wait = 1s,
                                  .tenant_lines = {.per_second = 100, .burst = 100},
                                  .log_interval = 10s};

constexpr LeaseId kLease{1, 1};
constexpr LeaseId kEnded{2, 1};

/// All connections of tenants have requests.
Result<std::optional<ConnectionLimiter::ConnectionId>> enter(ConnectionLimiter& limiter,
                                                             ConnectionLimiter::ConnectionId id,
                                                             const char* tenant) {
  return limiter.authenticated(id, {.lease = kLease, .tenant = {tenant}}, kStart, [](auto, auto) {
    return ConnectionLimiter::Use{.has_requests = true};
  });
}

/// Which connections have requests; kEnded has ended.
struct Uses {
  std::set<ConnectionLimiter::ConnectionId> busy;
  ConnectionLimiter::Use operator()(ConnectionLimiter::ConnectionId id, LeaseId lease) const {
    return {.has_requests = busy.contains(id), .lease_is_live = lease != kEnded};
  }
};

}  // namespace

TEST_CASE(
    "connection limiter: the silent connections of one user displace each other, not those of "
    "others") {
  ConnectionLimiter limiter(kSmall);
  CHECK_FALSE(limiter.connected(1, kBob, kStart));
  std::vector<ConnectionLimiter::ConnectionId> displaced;
  for (ConnectionLimiter::ConnectionId id = 2; id < 100; ++id) {
    if (const auto gone = limiter.connected(id, kAnn, kStart)) displaced.push_back(*gone);
  }
  CHECK(displaced.size() == 98 - 4);  // bob has one of eight places, ann half of the others
  CHECK(displaced.front() == 2);      // her oldest
  CHECK(std::ranges::find(displaced, 1) == displaced.end());
  CHECK(enter(limiter, 1, "bob"));
  CHECK(enter(limiter, 99, "ann"));
  CHECK(enter(limiter, 2, "ann").error().code == Errc::ConnectionLost);
}

TEST_CASE(
    "connection limiter: when more users than places have silent connections, the oldest one "
    "goes") {
  ConnectionLimiter limiter(kSmall);
  for (ConnectionLimiter::ConnectionId id = 1; id <= 8; ++id) {
    CHECK_FALSE(limiter.connected(id, static_cast<uid_t>(id), kStart));
  }
  CHECK(limiter.connected(9, 9, kStart) == 1);
}

TEST_CASE("connection limiter: a connection that does not authenticate in time loses its place") {
  ConnectionLimiter limiter(kSmall);
  CHECK_FALSE(limiter.next_deadline());
  (void)limiter.connected(1, kAnn, kStart);
  (void)limiter.connected(2, kAnn, kStart + 1s);
  (void)limiter.connected(3, kAnn, kStart + 2s);
  CHECK(enter(limiter, 2, "ann"));
  CHECK(limiter.next_deadline() == kStart + 5s);
  CHECK(limiter.take_overdue(kStart + 5s - 1ns).empty());
  CHECK(limiter.take_overdue(kStart + 5s) == std::vector<ConnectionLimiter::ConnectionId>{1});
  CHECK(limiter.next_deadline() == kStart + 7s);
  limiter.closed(3);
  CHECK(limiter.take_overdue(kStart + 60s).empty());
  CHECK(limiter.tenant_of(2)->value == "ann");
}

TEST_CASE("connection limiter: a tenant has its share of the places, and others still get in") {
  ConnectionLimiter limiter(kSmall);
  ConnectionLimiter::ConnectionId id = 0;
  const auto connect = [&](const char* tenant) {
    (void)limiter.connected(++id, kAnn, kStart);
    return enter(limiter, id, tenant);
  };
  for (int i = 0; i < 4; ++i) CHECK(connect("greedy"));
  CHECK(connect("greedy").error().code == Errc::QueueFull);
  for (int i = 0; i < 2; ++i) CHECK(connect("ann"));
  CHECK(connect("ann").error().code == Errc::QueueFull);
  limiter.closed(1);
  limiter.closed(1);
  CHECK(connect("ann"));
}

TEST_CASE("connection limiter: a connection belongs to one tenant for good") {
  ConnectionLimiter limiter(kSmall);
  (void)limiter.connected(1, kAnn, kStart);
  CHECK(limiter.tenant_of(1) == nullptr);
  CHECK(enter(limiter, 1, "ann"));
  CHECK(enter(limiter, 1, "ann"));
  CHECK(enter(limiter, 1, "bob").error().code == Errc::BadToken);
}

TEST_CASE(
    "connection limiter: unauthenticated connections are paced by user, connections of tenants by "
    "tenant") {
  ConnectionLimiter limiter(kSmall);
  (void)limiter.connected(1, kAnn, kStart);  // weighs 1
  (void)limiter.connected(2, kAnn, kStart);
  (void)limiter.connected(3, kBob, kStart);
  CHECK(limiter.pace(1, 18, kStart) == Duration::zero());
  CHECK(limiter.pace(2, 5, kStart) == 500ms);
  CHECK(limiter.pace(3, 5, kStart) == Duration::zero());
  CHECK(enter(limiter, 2, "ann"));
  CHECK(enter(limiter, 3, "ann"));
  CHECK(limiter.pace(2, 88, kStart) == Duration::zero());  // ann paid 6 for each connection
  CHECK(limiter.pace(3, 100, kStart) == 1s);
  CHECK(limiter.pace(3, 100, kStart + 2s) == Duration::zero());
}

TEST_CASE(
    "connection limiter: a user of tokens pays at the rate of their tenants, and then at that of "
    "users") {
  ConnectionLimiter limiter(kSmall);
  const auto connect_once = [&](ConnectionLimiter::ConnectionId id, const char* tenant) {
    (void)limiter.connected(id, kAnn, kStart);
    const Duration wait = limiter.pace(id, 1, kStart);
    CHECK(enter(limiter, id, tenant));
    limiter.closed(id);
    return wait;
  };
  for (ConnectionLimiter::ConnectionId id = 1; id <= 50; ++id)
    REQUIRE(connect_once(id, "ann") == Duration::zero());
  CHECK(connect_once(51, "ann") == Duration::zero());            // the last that tenant ann can pay
  for (ConnectionLimiter::ConnectionId id = 52; id <= 61; ++id)  // 20, the burst of user ann
    REQUIRE(connect_once(id, "ann") == Duration::zero());
  CHECK(connect_once(62, "ann") > Duration::zero());
  CHECK(connect_once(63, "other") > Duration::zero());  // of the same user
}

TEST_CASE("connection limiter: a user who connected too often waits for a bounded time") {
  ConnectionLimiter limiter(kSmall);
  for (ConnectionLimiter::ConnectionId id = 1; id <= 1'000; ++id)
    (void)limiter.connected(id, kAnn, kStart);
  CHECK(limiter.pace(1'000, 1, kStart) == 1s);
  CHECK(limiter.pace(1'000, 1, kStart + 2s) == Duration::zero());
}

TEST_CASE("connection limiter: what the limits did is reported once in an interval") {
  ConnectionLimiter limiter(kSmall);
  CHECK_FALSE(limiter.take_report(kStart));
  for (ConnectionLimiter::ConnectionId id = 1; id <= 6; ++id)
    (void)limiter.connected(id, kAnn, kStart);
  CHECK(limiter.take_report(kStart) == ConnectionLimiter::Report{.displaced = 2});
  (void)limiter.take_overdue(kStart + 5s);
  CHECK_FALSE(limiter.take_report(kStart + 10s - 1ns));
  CHECK(limiter.take_report(kStart + 10s) == ConnectionLimiter::Report{.timed_out = 4});
  CHECK_FALSE(limiter.take_report(kStart + 60s));
}

TEST_CASE(
    "connection limiter: a tenant beyond its share gives the place of a connection without a "
    "request") {
  ConnectionLimiter limiter(kSmall);
  Uses uses{.busy = {2}};
  const auto connect = [&](ConnectionLimiter::ConnectionId id, LeaseId lease, TimePoint now) {
    (void)limiter.connected(id, kAnn, now);
    return limiter.authenticated(id, {.lease = lease, .tenant = {"ann"}}, now, uses);
  };
  for (ConnectionLimiter::ConnectionId id = 1; id <= 3; ++id) {
    CHECK(connect(id, kLease, kStart + std::chrono::seconds(id)).value() == std::nullopt);
  }
  CHECK(connect(4, kEnded, kStart + 4s).value() == std::nullopt);
  CHECK(connect(5, kLease, kStart + 5s).value() == 4);  // its lease has ended
  limiter.used(1, kLease, kStart + 6s);
  CHECK(connect(6, kLease, kStart + 7s).value() == 3);  // 1 was used since, 2 has a request
  CHECK(connect(7, kLease, kStart + 8s).value() == 5);
  uses.busy = {1, 2, 6, 7};
  CHECK(connect(8, kLease, kStart + 9s).error().code == Errc::QueueFull);
  CHECK(limiter.take_report(kStart + 9s) == ConnectionLimiter::Report{.refused = 1, .unused = 3});
  limiter.closed(5);  // late
  CHECK(limiter.tenant_of(5) == nullptr);
}

TEST_CASE(
    "connection limiter: a connection whose lease has ended is closed once it has had no request "
    "for long") {
  ConnectionLimiter limiter(kSmall);
  Uses uses{.busy = {2}};
  for (ConnectionLimiter::ConnectionId id = 1; id <= 3; ++id) {
    (void)limiter.connected(id, kAnn, kStart);
    CHECK(limiter.authenticated(id, {.lease = id == 3 ? kLease : kEnded, .tenant = {"ann"}}, kStart,
                                uses));
  }
  CHECK(limiter.take_ended(kStart + 1s, uses).empty());
  CHECK(limiter.take_ended(kStart + 11s - 1ns, uses).empty());
  CHECK(limiter.take_ended(kStart + 11s, uses) == std::vector<ConnectionLimiter::ConnectionId>{1});
  uses.busy.clear();
  CHECK(limiter.take_ended(kStart + 12s, uses).empty());  // the request of 2 has just ended
  limiter.used(2, kLease, kStart + 13s);
  CHECK(limiter.take_ended(kStart + 60s, uses).empty());
  limiter.used(3, kEnded, kStart + 61s);
  CHECK(limiter.take_ended(kStart + 61s, uses).empty());
  CHECK(limiter.take_ended(kStart + 71s, uses) == std::vector<ConnectionLimiter::ConnectionId>{3});
  CHECK(limiter.tenant_of(2)->value == "ann");
}
