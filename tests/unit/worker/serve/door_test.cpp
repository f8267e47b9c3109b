#include "worker/serve/door.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr uid_t kAnn = 1000;
constexpr uid_t kBob = 1001;
constexpr TimePoint kStart{0};

constexpr DoorLimits kSmall{.stranger_places = 8,
                            .tenant_places = 8,
                            .authentication_timeout = 5s,
                            .stranger_lines = {.per_second = 10, .burst = 20},
                            .max_stranger_wait = 1s,
                            .tenant_lines = {.per_second = 100, .burst = 100},
                            .log_interval = 10s};

constexpr LeaseId kLease{1, 1};
constexpr LeaseId kEnded{2, 1};

/// All connections of tenants have requests.
Result<std::optional<Door::ConnectionId>> enter(Door& door, Door::ConnectionId id,
                                                const char* tenant) {
  return door.authenticated(id, {.lease = kLease, .tenant = {tenant}}, kStart,
                            [](auto, auto) { return Door::Use{.has_requests = true}; });
}

/// Which connections have requests; kEnded has ended.
struct Uses {
  std::set<Door::ConnectionId> busy;
  Door::Use operator()(Door::ConnectionId id, LeaseId lease) const {
    return {.has_requests = busy.contains(id), .lease_is_live = lease != kEnded};
  }
};

}  // namespace

TEST_CASE("door: the silent connections of one user displace each other, not those of others") {
  Door door(kSmall);
  CHECK_FALSE(door.connected(1, kBob, kStart));
  std::vector<Door::ConnectionId> displaced;
  for (Door::ConnectionId id = 2; id < 100; ++id) {
    if (const auto gone = door.connected(id, kAnn, kStart)) displaced.push_back(*gone);
  }
  CHECK(displaced.size() == 98 - 4);  // bob has one of eight places, ann half of the others
  CHECK(displaced.front() == 2);      // her oldest
  CHECK(std::ranges::find(displaced, 1) == displaced.end());
  CHECK(enter(door, 1, "bob"));
  CHECK(enter(door, 99, "ann"));
  CHECK(enter(door, 2, "ann").error().code == Errc::ConnectionLost);
}

TEST_CASE("door: when more users than places have silent connections, the oldest one goes") {
  Door door(kSmall);
  for (Door::ConnectionId id = 1; id <= 8; ++id) {
    CHECK_FALSE(door.connected(id, static_cast<uid_t>(id), kStart));
  }
  CHECK(door.connected(9, 9, kStart) == 1);
}

TEST_CASE("door: a connection that does not authenticate in time loses its place") {
  Door door(kSmall);
  CHECK_FALSE(door.next_deadline());
  (void)door.connected(1, kAnn, kStart);
  (void)door.connected(2, kAnn, kStart + 1s);
  (void)door.connected(3, kAnn, kStart + 2s);
  CHECK(enter(door, 2, "ann"));
  CHECK(door.next_deadline() == kStart + 5s);
  CHECK(door.take_overdue(kStart + 5s - 1ns).empty());
  CHECK(door.take_overdue(kStart + 5s) == std::vector<Door::ConnectionId>{1});
  CHECK(door.next_deadline() == kStart + 7s);
  door.closed(3);
  CHECK(door.take_overdue(kStart + 60s).empty());
  CHECK(door.tenant_of(2)->value == "ann");
}

TEST_CASE("door: a tenant has its share of the places, and others still get in") {
  Door door(kSmall);
  Door::ConnectionId id = 0;
  const auto connect = [&](const char* tenant) {
    (void)door.connected(++id, kAnn, kStart);
    return enter(door, id, tenant);
  };
  for (int i = 0; i < 4; ++i) CHECK(connect("greedy"));
  CHECK(connect("greedy").error().code == Errc::QueueFull);
  for (int i = 0; i < 2; ++i) CHECK(connect("ann"));
  CHECK(connect("ann").error().code == Errc::QueueFull);
  door.closed(1);
  door.closed(1);
  CHECK(connect("ann"));
}

TEST_CASE("door: a connection belongs to one tenant for good") {
  Door door(kSmall);
  (void)door.connected(1, kAnn, kStart);
  CHECK(door.tenant_of(1) == nullptr);
  CHECK(enter(door, 1, "ann"));
  CHECK(enter(door, 1, "ann"));
  CHECK(enter(door, 1, "bob").error().code == Errc::BadToken);
}

TEST_CASE("door: strangers are paced by user, connections of tenants by tenant") {
  Door door(kSmall);
  (void)door.connected(1, kAnn, kStart);  // weighs 1
  (void)door.connected(2, kAnn, kStart);
  (void)door.connected(3, kBob, kStart);
  CHECK(door.pace(1, 18, kStart) == Duration::zero());
  CHECK(door.pace(2, 5, kStart) == 500ms);
  CHECK(door.pace(3, 5, kStart) == Duration::zero());
  CHECK(enter(door, 2, "ann"));
  CHECK(enter(door, 3, "ann"));
  CHECK(door.pace(2, 88, kStart) == Duration::zero());  // ann paid 6 for each connection
  CHECK(door.pace(3, 100, kStart) == 1s);
  CHECK(door.pace(3, 100, kStart + 2s) == Duration::zero());
}

TEST_CASE("door: a user of tokens pays at the rate of their tenants, and then at that of users") {
  Door door(kSmall);
  const auto connect_once = [&](Door::ConnectionId id, const char* tenant) {
    (void)door.connected(id, kAnn, kStart);
    const Duration wait = door.pace(id, 1, kStart);
    CHECK(enter(door, id, tenant));
    door.closed(id);
    return wait;
  };
  for (Door::ConnectionId id = 1; id <= 50; ++id)
    REQUIRE(connect_once(id, "ann") == Duration::zero());
  CHECK(connect_once(51, "ann") == Duration::zero());  // the last that tenant ann can pay
  for (Door::ConnectionId id = 52; id <= 61; ++id)     // 20, the burst of user ann
    REQUIRE(connect_once(id, "ann") == Duration::zero());
  CHECK(connect_once(62, "ann") > Duration::zero());
  CHECK(connect_once(63, "other") > Duration::zero());  // of the same user
}

TEST_CASE("door: a user who connected too often waits for a bounded time") {
  Door door(kSmall);
  for (Door::ConnectionId id = 1; id <= 1'000; ++id) (void)door.connected(id, kAnn, kStart);
  CHECK(door.pace(1'000, 1, kStart) == 1s);
  CHECK(door.pace(1'000, 1, kStart + 2s) == Duration::zero());
}

TEST_CASE("door: what the limits did is reported once in an interval") {
  Door door(kSmall);
  CHECK_FALSE(door.take_report(kStart));
  for (Door::ConnectionId id = 1; id <= 6; ++id) (void)door.connected(id, kAnn, kStart);
  CHECK(door.take_report(kStart) == Door::Report{.displaced = 2});
  (void)door.take_overdue(kStart + 5s);
  CHECK_FALSE(door.take_report(kStart + 10s - 1ns));
  CHECK(door.take_report(kStart + 10s) == Door::Report{.timed_out = 4});
  CHECK_FALSE(door.take_report(kStart + 60s));
}

TEST_CASE("door: a tenant beyond its share gives the place of a connection without a request") {
  Door door(kSmall);
  Uses uses{.busy = {2}};
  const auto connect = [&](Door::ConnectionId id, LeaseId lease, TimePoint now) {
    (void)door.connected(id, kAnn, now);
    return door.authenticated(id, {.lease = lease, .tenant = {"ann"}}, now, uses);
  };
  for (Door::ConnectionId id = 1; id <= 3; ++id) {
    CHECK(connect(id, kLease, kStart + std::chrono::seconds(id)).value() == std::nullopt);
  }
  CHECK(connect(4, kEnded, kStart + 4s).value() == std::nullopt);
  CHECK(connect(5, kLease, kStart + 5s).value() == 4);  // its lease has ended
  door.used(1, kLease, kStart + 6s);
  CHECK(connect(6, kLease, kStart + 7s).value() == 3);  // 1 was used since, 2 has a request
  CHECK(connect(7, kLease, kStart + 8s).value() == 5);
  uses.busy = {1, 2, 6, 7};
  CHECK(connect(8, kLease, kStart + 9s).error().code == Errc::QueueFull);
  CHECK(door.take_report(kStart + 9s) == Door::Report{.refused = 1, .unused = 3});
  door.closed(5);  // late
  CHECK(door.tenant_of(5) == nullptr);
}

TEST_CASE(
    "door: a connection whose lease has ended is closed once it has had no request for long") {
  Door door(kSmall);
  Uses uses{.busy = {2}};
  for (Door::ConnectionId id = 1; id <= 3; ++id) {
    (void)door.connected(id, kAnn, kStart);
    CHECK(door.authenticated(id, {.lease = id == 3 ? kLease : kEnded, .tenant = {"ann"}}, kStart,
                             uses));
  }
  CHECK(door.take_ended(kStart + 1s, uses).empty());
  CHECK(door.take_ended(kStart + 11s - 1ns, uses).empty());
  CHECK(door.take_ended(kStart + 11s, uses) == std::vector<Door::ConnectionId>{1});
  uses.busy.clear();
  CHECK(door.take_ended(kStart + 12s, uses).empty());  // the request of 2 has just ended
  door.used(2, kLease, kStart + 13s);
  CHECK(door.take_ended(kStart + 60s, uses).empty());
  door.used(3, kEnded, kStart + 61s);
  CHECK(door.take_ended(kStart + 61s, uses).empty());
  CHECK(door.take_ended(kStart + 71s, uses) == std::vector<Door::ConnectionId>{3});
  CHECK(door.tenant_of(2)->value == "ann");
}
