#include "worker/engine/restore_window.hpp"

#include <catch2/catch.hpp>

namespace leasehold::testing {
namespace {

constexpr TimePoint kStart{1'000};

Errc code_at_end(const std::optional<Error>& end) {
  REQUIRE(end);
  CHECK(end->scope == FailureScope::Engine);
  return end->code;
}

}  // namespace

TEST_CASE("restore window: after a passing cause requests wait, and end with WeightsLoading") {
  const Errc cause = GENERATE(Errc::WeightsLoading, Errc::EngineLeaseFenced, Errc::LeaseRevoked,
                              Errc::LeaseFenced, Errc::PoolExhausted, Errc::ConnectionLost);
  CAPTURE(name(cause));
  RestoreWindow window;
  const Error error{cause, "why"};

  CHECK_FALSE(window.on_failed(error, kStart));
  CHECK_FALSE(window.on_failed(error, kStart + kRestoreTimeout - Duration(1)));
  const auto end = window.on_failed(error, kStart + kRestoreTimeout);
  CHECK(code_at_end(end) == Errc::WeightsLoading);
  CHECK(is_retryable(end->code));
  CHECK(end->detail.find("why") != std::string::npos);
}

TEST_CASE("restore window: a part that does not come back is MissingWeight at once, and final") {
  const Errc cause = GENERATE(Errc::MissingWeight, Errc::FileCorrupt, Errc::UnsupportedModel,
                              Errc::BadRequest, Errc::UntrustedSegment);
  CAPTURE(name(cause));
  RestoreWindow window;

  const auto end = window.on_failed({cause, "part blk.1"}, kStart);
  CHECK(code_at_end(end) == Errc::MissingWeight);
  CHECK_FALSE(is_retryable(end->code));
  CHECK(end->detail.find("part blk.1") != std::string::npos);
}

TEST_CASE("restore window: a lost broker ends the wait with its own retryable code") {
  RestoreWindow window;
  const auto end = window.on_failed({Errc::BrokerLost, "no broker"}, kStart);
  REQUIRE(end);
  CHECK(end->code == Errc::BrokerLost);
}

TEST_CASE("restore window: each wait is measured from its own first failure") {
  RestoreWindow window;
  const Error passing{Errc::WeightsLoading, "why"};
  CHECK_FALSE(window.on_failed(passing, kStart));
  window.close();
  CHECK_FALSE(window.on_failed(passing, kStart + kRestoreTimeout));
  window.on_restored(0);
  CHECK_FALSE(window.on_failed(passing, kStart + 2 * kRestoreTimeout));
  REQUIRE(window.on_failed(passing, kStart + 3 * kRestoreTimeout));
  CHECK_FALSE(window.on_failed(passing, kStart + 4 * kRestoreTimeout));
}

TEST_CASE("restore window: parts that are lost once each end nothing, however long they take") {
  RestoreWindow window;
  TimePoint now = kStart;
  for (std::size_t part = 0; part < 100; ++part) {
    CHECK_FALSE(window.on_lost(part, now));
    now = now + kRestoreTimeout;
    window.on_restored(part);
  }
}

TEST_CASE("restore window: parts lost again before a step succeeds end the wait after its time") {
  RestoreWindow window;
  CHECK_FALSE(window.on_lost(0, kStart));
  window.on_restored(0);
  CHECK_FALSE(window.on_lost(1, kStart + kRestoreTimeout));
  window.on_restored(1);
  const TimePoint again = kStart + 2 * kRestoreTimeout;
  CHECK_FALSE(window.on_lost(0, again));
  window.on_restored(0);
  CHECK_FALSE(window.on_lost(1, again + kRestoreTimeout - Duration(1)));
  window.on_restored(1);
  const auto end = window.on_lost(1, again + kRestoreTimeout);
  CHECK(code_at_end(end) == Errc::WeightsLoading);
  CHECK_FALSE(window.on_lost(1, again + 2 * kRestoreTimeout));
}

TEST_CASE("restore window: a step that succeeds begins the count anew") {
  RestoreWindow window;
  for (int step = 0; step < 10; ++step) {
    const TimePoint now = kStart + step * 2 * kRestoreTimeout;
    CHECK_FALSE(window.on_lost(0, now));
    window.on_restored(0);
    CHECK_FALSE(window.on_lost(0, now + kRestoreTimeout));
    window.close();
  }
}

}  // namespace leasehold::testing
