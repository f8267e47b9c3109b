#include "worker/lease/reconnect_state.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;
using namespace std::chrono_literals;
using Phase = ReconnectState::Phase;

namespace {

constexpr TimePoint kStart{1'000'000'000};

ReconnectState disconnected() {
  ReconnectState path(10s);
  path.connection_lost(kStart);
  return path;
}

ReconnectState resuming() {
  ReconnectState path = disconnected();
  path.connected();
  return path;
}

}  // namespace

TEST_CASE("reconnect state: a worker goes from lost over connected and resumed to attached") {
  ReconnectState path(10s);
  CHECK(path.phase() == Phase::Attached);
  path.connection_lost(kStart);
  CHECK(path.phase() == Phase::Disconnected);
  CHECK(path.next_attempt() > kStart);
  path.connected();
  CHECK(path.phase() == Phase::Resuming);
  path.resumed();
  CHECK(path.phase() == Phase::Redelivering);
  path.reattached();
  CHECK(path.phase() == Phase::Attached);
}

TEST_CASE("reconnect state: the backoff grows to a bound and restarts after a reattach") {
  ReconnectState path = disconnected();
  const Duration first = path.next_attempt() - kStart;
  Duration longest{};
  TimePoint now = kStart;
  for (int i = 0; i < 12; ++i) {
    path.connect_failed(now);
    longest = std::max(longest, path.next_attempt() - now);
    now = path.next_attempt();
  }
  CHECK(longest == 200ms);
  path.connected();
  path.resumed();
  path.reattached();
  path.connection_lost(now);
  CHECK(path.next_attempt() - now == first);
}

TEST_CASE("reconnect state: a refusal of the broker is final, a missing answer is not") {
  for (const Errc no : {Errc::BrokerLost, Errc::PermissionDenied, Errc::UntrustedSegment,
                        Errc::BadRequest, Errc::UnknownMethod}) {
    ReconnectState path = resuming();
    path.request_failed(no, kStart);
    CHECK(path.phase() == Phase::Lost);
    path.connection_lost(kStart);
    CHECK(path.phase() == Phase::Lost);
  }
  for (const Errc silence : {Errc::ConnectionLost, Errc::TimedOut, Errc::Draining}) {
    ReconnectState path = resuming();
    path.request_failed(silence, kStart);
    CHECK(path.phase() == Phase::Disconnected);
  }
}

TEST_CASE("reconnect state: a broker that dies during redelivery is waited for again") {
  ReconnectState path = resuming();
  path.resumed();
  path.request_failed(Errc::ConnectionLost, kStart + 1s);
  CHECK(path.phase() == Phase::Disconnected);
  path.connection_lost(kStart + 1s);  // the same loss, reported by the connection
  CHECK(path.phase() == Phase::Disconnected);
}

TEST_CASE("reconnect state: the timeout counts from the first loss") {
  ReconnectState path = disconnected();
  path.connected();
  path.connection_lost(kStart + 9s);
  CHECK(path.phase() == Phase::Disconnected);
  CHECK(path.next_attempt() <= kStart + 10s);
  path.connect_failed(kStart + 10s);
  CHECK(path.phase() == Phase::Lost);
}
