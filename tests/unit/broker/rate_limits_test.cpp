#include "broker/server/rate_limits.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr RateConfig kConfig{.lines = {.per_second = 10, .burst = 5},
                             .worker_lines = {.per_second = 100, .burst = 50},
                             .connection_weight = 2,
                             .longest_debt = 1s};

struct House {
  uid_t operator_uid = ::geteuid();
  uid_t worker = operator_uid + 1;
  uid_t tenant = operator_uid + 2;
  uid_t other_tenant = operator_uid + 3;
  TimePoint now{0};
  RateLimits limits{{worker}, kConfig};
  Duration line(uid_t uid) { return limits.admit_line(uid, 1, now); }
};

}  // namespace

TEST_CASE("rate limits: a user's connections share one budget, and each later line waits longer") {
  House house;
  for (int i = 0; i < 5; ++i) CHECK(house.line(house.tenant) == 0s);
  CHECK(house.line(house.tenant) == 100ms);
  CHECK(house.line(house.tenant) == 200ms);
  CHECK(house.limits.admit_line(house.tenant, 10, house.now) == 1200ms);
  house.now = house.now + 1200ms;
  CHECK(house.line(house.tenant) == 100ms);
}

TEST_CASE("rate limits: what one user asks costs no other, no worker and no operator anything") {
  House house;
  for (int i = 0; i < 1'000; ++i) house.line(house.tenant);

  CHECK(house.line(house.other_tenant) == 0s);
  for (int i = 0; i < 50; ++i) CHECK(house.line(house.worker) == 0s);
  CHECK(house.line(house.worker) == 10ms);
  for (int i = 0; i < 1'000; ++i) CHECK(house.line(house.operator_uid) == 0s);
  CHECK(house.line(0) == 0s);
}

TEST_CASE("rate limits: connections are charged, and none is taken from a user far behind") {
  House house;
  CHECK(house.limits.admit_connection(house.tenant, house.now));
  CHECK(house.limits.admit_connection(house.tenant, house.now));
  CHECK(house.line(house.tenant) == 0s);
  CHECK(house.line(house.tenant) == 100ms);
  house.limits.admit_line(house.tenant, 10, house.now);

  CHECK_FALSE(house.limits.admit_connection(house.tenant, house.now));
  CHECK(house.limits.admit_connection(house.other_tenant, house.now));
  for (int i = 0; i < 100; ++i) {
    CHECK(house.limits.admit_connection(house.operator_uid, house.now));
  }
  house.now = house.now + 100ms;
  CHECK(house.limits.admit_connection(house.tenant, house.now));
}

TEST_CASE("rate limits: a worker's events beyond the rate are dropped and counted") {
  House house;
  CHECK(house.limits.admit_events(ConnectionId{1}, 50'000, house.now) == 40'000);
  CHECK(house.limits.admit_events(ConnectionId{2}, 7, house.now) == 7);
  CHECK(house.limits.take_dropped() == 10'000);
  CHECK(house.limits.take_dropped() == 0);
}
