#include "broker/server/connections/rate_limits.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr RateConfig kConfig{.lines = {.per_second = 10, .burst = 5},
                             .worker_lines = {.per_second = 100, .burst = 50},
                             .connection_weight = 2,
                             .max_wait = 1s};

struct Fixture {
  uid_t operator_uid = ::geteuid();
  uid_t worker = operator_uid + 1;
  uid_t tenant = operator_uid + 2;
  uid_t other_tenant = operator_uid + 3;
  TimePoint now{0};
  RateLimits limits{{worker}, kConfig};
  Duration line(uid_t uid) { return limits.admit_line(uid, 1, now); }
};

}  // namespace

TEST_CASE("rate limits: a user's connections share one budget, and each message waits longer") {
  Fixture fixture;
  for (int i = 0; i < 5; ++i) CHECK(fixture.line(fixture.tenant) == 0s);
  CHECK(fixture.line(fixture.tenant) == 100ms);
  CHECK(fixture.line(fixture.tenant) == 200ms);
  CHECK(fixture.limits.admit_line(fixture.tenant, 10, fixture.now) == 1200ms);
  fixture.now = fixture.now + 1200ms;
  CHECK(fixture.line(fixture.tenant) == 100ms);
}

TEST_CASE("rate limits: one user's messages delay no other user, worker or operator") {
  Fixture fixture;
  for (int i = 0; i < 1'000; ++i) fixture.line(fixture.tenant);

  CHECK(fixture.line(fixture.other_tenant) == 0s);
  for (int i = 0; i < 50; ++i) CHECK(fixture.line(fixture.worker) == 0s);
  CHECK(fixture.line(fixture.worker) == 10ms);
  for (int i = 0; i < 1'000; ++i) CHECK(fixture.line(fixture.operator_uid) == 0s);
  CHECK(fixture.line(0) == 0s);
}

TEST_CASE("rate limits: connections cost, and a user far behind gets no new one") {
  Fixture fixture;
  CHECK(fixture.limits.admit_connection(fixture.tenant, fixture.now));
  CHECK(fixture.limits.admit_connection(fixture.tenant, fixture.now));
  CHECK(fixture.line(fixture.tenant) == 0s);
  CHECK(fixture.line(fixture.tenant) == 100ms);
  fixture.limits.admit_line(fixture.tenant, 10, fixture.now);

  CHECK_FALSE(fixture.limits.admit_connection(fixture.tenant, fixture.now));
  CHECK(fixture.limits.admit_connection(fixture.other_tenant, fixture.now));
  for (int i = 0; i < 100; ++i) {
    CHECK(fixture.limits.admit_connection(fixture.operator_uid, fixture.now));
  }
  fixture.now = fixture.now + 100ms;
  CHECK(fixture.limits.admit_connection(fixture.tenant, fixture.now));
}

TEST_CASE("rate limits: a worker's events beyond the rate are dropped and counted") {
  Fixture fixture;
  CHECK(fixture.limits.admit_events(ConnectionId{1}, 50'000, fixture.now) == 40'000);
  CHECK(fixture.limits.admit_events(ConnectionId{2}, 7, fixture.now) == 7);
  CHECK(fixture.limits.take_dropped() == 10'000);
  CHECK(fixture.limits.take_dropped() == 0);
}
