#include "broker/server/connections/connection_admission.hpp"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <ranges>

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr AdmissionLimits kSmall{.places = 12, .reserved = 4, .first_call_timeout = 10s};

struct DoorFixture {
  const uid_t operator_uid = ::geteuid();
  const uid_t worker = operator_uid + 1;
  const uid_t ann = operator_uid + 2;
  const uid_t bob = operator_uid + 3;
  RateLimits rates{
      {worker}, {.lines = {.per_second = 10, .burst = 0}, .connection_weight = 0, .max_wait = 1s}};
  ConnectionAdmission admission{rates, {worker}, kSmall};
  TimePoint now{0};
  std::uint64_t last_id = 0;

  ConnectionAdmission::Admission connect(uid_t uid) {
    return admission.connected({++last_id}, uid, now);
  }
  ConnectionAdmission::Admission connect_and_call(uid_t uid) {
    const auto outcome = connect(uid);
    if (outcome.is_admitted) admission.called({last_id});
    return outcome;
  }
};

}  // namespace

TEST_CASE(
    "connection admission: a user above its rate is refused before it costs another user a place") {
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

TEST_CASE(
    "connection admission: a connection without a call in time is closed, also an operator's") {
  DoorFixture fixture;
  fixture.connect(fixture.operator_uid);
  fixture.connect(fixture.ann);
  fixture.now = fixture.now + 1s;
  fixture.connect(fixture.bob);
  fixture.admission.called({2});
  fixture.now = TimePoint{0} + 10s - 1ns;
  CHECK(fixture.admission.take_silent(fixture.now).empty());
  fixture.now = TimePoint{0} + 10s;
  CHECK(fixture.admission.take_silent(fixture.now) == std::vector{ConnectionId{1}});
  fixture.admission.closed({3});
  fixture.now = fixture.now + 1h;
  CHECK(fixture.admission.take_silent(fixture.now).empty());
}

TEST_CASE(
    "connection admission: connections that hold a lease, and operators' and workers', are kept") {
  DoorFixture fixture;
  for (int i = 0; i < 4; ++i) CHECK(fixture.connect_and_call(fixture.ann).is_admitted);
  for (std::uint64_t id = 1; id <= 3; ++id) fixture.admission.holds_lease({id});
  for (int i = 0; i < 4; ++i) CHECK(fixture.connect_and_call(fixture.worker).is_admitted);
  for (int i = 0; i < 4; ++i) CHECK(fixture.connect_and_call(fixture.operator_uid).is_admitted);
  CHECK(fixture.connect_and_call(fixture.bob).displaced == ConnectionId{4});  // without a lease
  fixture.admission.holds_lease({fixture.last_id});
  CHECK_FALSE(fixture.connect_and_call(fixture.bob).is_admitted);
  CHECK_FALSE(fixture.connect_and_call(fixture.ann).is_admitted);
  CHECK_FALSE(fixture.connect_and_call(fixture.worker).is_admitted);
}

TEST_CASE(
    "connection admission: a user has its share, and beyond it loses its own oldest connection") {
  DoorFixture fixture;
  for (int i = 0; i < 4; ++i) CHECK_FALSE(fixture.connect_and_call(fixture.ann).displaced);
  CHECK(fixture.connect_and_call(fixture.ann).displaced == ConnectionId{1});
  CHECK(fixture.connect_and_call(fixture.ann).displaced == ConnectionId{2});
  for (int i = 0; i < 2; ++i) CHECK_FALSE(fixture.connect_and_call(fixture.bob).displaced);
  CHECK(fixture.connect_and_call(fixture.bob).displaced == ConnectionId{3});  // ann has two more
  CHECK(fixture.connect_and_call(fixture.bob).displaced == ConnectionId{7});  // its own
}

TEST_CASE(
    "connection admission: workers and operators have the reserve, and operators displace "
    "tenants") {
  DoorFixture fixture;
  for (uid_t user = 0; user < 8; ++user)
    CHECK(fixture.connect_and_call(fixture.ann + user).is_admitted);
  for (int i = 0; i < 2; ++i) CHECK_FALSE(fixture.connect_and_call(fixture.worker).displaced);
  for (int i = 0; i < 2; ++i) CHECK_FALSE(fixture.connect_and_call(fixture.operator_uid).displaced);
  for (int i = 0; i < 8; ++i) {
    const auto admission = fixture.connect_and_call(fixture.operator_uid);
    CHECK(admission.is_admitted);
    CHECK(admission.displaced);
  }
  CHECK_FALSE(fixture.connect_and_call(fixture.operator_uid).is_admitted);
}

TEST_CASE("connection admission: however many users take all they can, their places become equal") {
  DoorFixture fixture;
  std::map<ConnectionId, uid_t> open;
  std::map<uid_t, int> held;
  constexpr uid_t kUsers = 4;
  for (uid_t user = 0; user < kUsers; ++user) {
    for (int i = 0; i < 20; ++i) {
      const uid_t uid = fixture.ann + user;
      const auto admission = fixture.connect_and_call(uid);
      REQUIRE(admission.is_admitted);
      ++held[uid];
      open[{fixture.last_id}] = uid;
      if (admission.displaced) --held[open.at(*admission.displaced)];
    }
  }
  for (uid_t user = 0; user < kUsers; ++user) CHECK(held[fixture.ann + user] >= 1);
  const auto [least, most] = std::ranges::minmax(held | std::views::values);
  CHECK(most - least <= 1);
}

TEST_CASE("connection admission: what the limits did is reported once in an interval") {
  DoorFixture fixture;
  CHECK_FALSE(fixture.admission.take_report(fixture.now));
  for (int i = 0; i < 6; ++i) fixture.connect(fixture.ann);
  CHECK(fixture.admission.take_report(fixture.now) == ConnectionAdmission::Report{.displaced = 2});
  fixture.admission.count_excess();
  (void)fixture.rates.admit_line(fixture.bob, 1'000, fixture.now);
  fixture.connect(fixture.bob);
  CHECK_FALSE(fixture.admission.take_report(fixture.now + 10s - 1ns));
  (void)fixture.admission.take_silent(fixture.now + 10s);
  CHECK(fixture.admission.take_report(fixture.now + 10s) ==
        ConnectionAdmission::Report{.refused = 1, .silent = 4, .bytes = 1});
  CHECK_FALSE(fixture.admission.take_report(fixture.now + 60s));
}
