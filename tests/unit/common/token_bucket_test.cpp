#include "common/token_bucket.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr Rate kTenASecond{.per_second = 10, .burst = 5};

}  // namespace

TEST_CASE("token bucket: a burst passes at once, then the fill rate applies") {
  TimePoint now{0};
  TokenBucket bucket(kTenASecond, now);

  CHECK(bucket.take(8, now) == 5);
  CHECK(bucket.take(1, now) == 0);
  now = now + 250ms;
  CHECK(bucket.take(8, now) == 2);
  CHECK(bucket.take(8, now) == 0);
}

TEST_CASE("token bucket: reservations wait in order") {
  TimePoint now{0};
  TokenBucket bucket(kTenASecond, now);

  CHECK(bucket.reserve(5, now) == 0ms);
  CHECK(bucket.reserve(1, now) == 100ms);
  CHECK(bucket.reserve(2, now) == 300ms);
  CHECK(bucket.take(1, now) == 0);
  CHECK(bucket.wait(now) == 300ms);
  now = now + 400ms;
  CHECK(bucket.wait(now) == 0ms);
  CHECK(bucket.take(8, now) == 1);
}

TEST_CASE("token bucket: an idle bucket fills up to the burst") {
  TokenBucket bucket(kTenASecond, TimePoint{0});
  const TimePoint later = TimePoint{0} + 1h;
  CHECK(bucket.wait(later) == 0ms);
  CHECK(bucket.take(100, later) == 5);
}

TEST_CASE("token bucket: a clock that goes back removes no tokens") {
  TokenBucket bucket(kTenASecond, TimePoint{0} + 1s);
  CHECK(bucket.take(3, TimePoint{0}) == 3);
  CHECK(bucket.take(3, TimePoint{0}) == 2);
}
