#include "worker/serve/door.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

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
  CHECK(door.authenticated(1, {"bob"}));
  CHECK(door.authenticated(99, {"ann"}));
  CHECK(door.authenticated(2, {"ann"}).error().code == Errc::ConnectionLost);
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
  CHECK(door.authenticated(2, {"ann"}));
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
  const auto enter = [&](const char* tenant) {
    (void)door.connected(++id, kAnn, kStart);
    return door.authenticated(id, {tenant});
  };
  for (int i = 0; i < 4; ++i) CHECK(enter("greedy"));
  CHECK(enter("greedy").error().code == Errc::QueueFull);
  for (int i = 0; i < 2; ++i) CHECK(enter("ann"));
  CHECK(enter("ann").error().code == Errc::QueueFull);
  door.closed(1);
  door.closed(1);
  CHECK(enter("ann"));
}

TEST_CASE("door: a connection belongs to one tenant for good") {
  Door door(kSmall);
  (void)door.connected(1, kAnn, kStart);
  CHECK(door.tenant_of(1) == nullptr);
  CHECK(door.authenticated(1, {"ann"}));
  CHECK(door.authenticated(1, {"ann"}));
  CHECK(door.authenticated(1, {"bob"}).error().code == Errc::BadToken);
}

TEST_CASE("door: strangers are paced by user, connections of tenants by tenant") {
  Door door(kSmall);
  (void)door.connected(1, kAnn, kStart);  // weighs 1
  (void)door.connected(2, kAnn, kStart);
  (void)door.connected(3, kBob, kStart);
  CHECK(door.pace(1, 18, kStart) == Duration::zero());
  CHECK(door.pace(2, 5, kStart) == 500ms);
  CHECK(door.pace(3, 5, kStart) == Duration::zero());
  CHECK(door.authenticated(2, {"ann"}));
  CHECK(door.authenticated(3, {"ann"}));
  CHECK(door.pace(2, 100, kStart) == Duration::zero());
  CHECK(door.pace(3, 100, kStart) == 1s);
  CHECK(door.pace(3, 100, kStart + 2s) == Duration::zero());
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
