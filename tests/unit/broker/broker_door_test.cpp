#include "broker/server/broker_door.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr BrokerDoorLimits kSmall{
    .places = 12, .reserved = 4, .of_one_user = 4, .first_call_timeout = 10s};

struct DoorFixture {
  const uid_t operator_uid = ::geteuid();
  const uid_t worker = operator_uid + 1;
  const uid_t ann = operator_uid + 2;
  const uid_t bob = operator_uid + 3;
  RateLimits rates{
      {worker}, {.lines = {.per_second = 10, .burst = 0}, .connection_weight = 0, .max_wait = 1s}};
  BrokerDoor door{rates, {worker}, kSmall};
  TimePoint now{0};
  std::uint64_t last_id = 0;

  BrokerDoor::Admission connect(uid_t uid) { return door.connected({++last_id}, uid, now); }
  BrokerDoor::Admission connect_and_call(uid_t uid) {
    const auto admission = connect(uid);
    if (admission.is_admitted) door.called({last_id});
    return admission;
  }
};

}  // namespace

TEST_CASE("broker door: a user above its rate is refused before it costs another user a place") {
  DoorFixture fixture;
  for (int i = 0; i < 4; ++i) CHECK(fixture.connect_and_call(fixture.ann).is_admitted);
  for (uid_t other = 0; other < 4; ++other)
    CHECK(fixture.connect_and_call(fixture.bob + 1 + other).is_admitted);
  (void)fixture.rates.admit_line(fixture.bob, 1'000, fixture.now);

  const auto refused = fixture.connect(fixture.bob);
  CHECK_FALSE(refused.is_admitted);
  CHECK_FALSE(refused.displaced);

  fixture.now = fixture.now + 100s;
  const auto admitted = fixture.connect(fixture.bob);
  CHECK(admitted.is_admitted);
  CHECK(admitted.displaced == ConnectionId{1});  // ann's oldest
}

TEST_CASE("broker door: a connection without a call in time is closed, also an operator's") {
  DoorFixture fixture;
  fixture.connect(fixture.operator_uid);
  fixture.connect(fixture.ann);
  fixture.now = fixture.now + 1s;
  fixture.connect(fixture.bob);
  fixture.door.called({2});
  fixture.now = TimePoint{0} + 10s - 1ns;
  CHECK(fixture.door.take_silent(fixture.now).empty());
  fixture.now = TimePoint{0} + 10s;
  CHECK(fixture.door.take_silent(fixture.now) == std::vector{ConnectionId{1}});
  fixture.door.closed({3});
  fixture.now = fixture.now + 1h;
  CHECK(fixture.door.take_silent(fixture.now).empty());
}

TEST_CASE("broker door: connections that hold a lease, and operators' and workers', are kept") {
  DoorFixture fixture;
  for (int i = 0; i < 3; ++i) {
    CHECK(fixture.connect_and_call(fixture.ann).is_admitted);
    fixture.door.holds_lease({fixture.last_id});
  }
  for (int i = 0; i < 4; ++i) CHECK(fixture.connect_and_call(fixture.worker).is_admitted);
  CHECK(fixture.connect_and_call(fixture.ann).is_admitted);
  for (int i = 0; i < 4; ++i) CHECK(fixture.connect_and_call(fixture.operator_uid).is_admitted);
  CHECK(fixture.connect_and_call(fixture.bob).displaced ==
        ConnectionId{8});  // ann's, without lease
  CHECK_FALSE(fixture.connect_and_call(fixture.bob).is_admitted);
}
