#include "tools/brokerctl/wait/wait.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/waiting_broker.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

constexpr LeaseId kRevokedLease{1, 1};

wire::LeaseView fenced_with_clocks() {
  auto view = lease_view(kRevokedLease, LeaseState::Fenced);
  view.clocks = {.refuse_ns = 1'000, .error_ns = 2'000, .quiet_ns = 3'000, .reuse_ns = 4'000};
  return view;
}

Result<void> revoke_and_wait(WaitingBroker& broker, std::int64_t timeout_ms = 100) {
  broker.replies["lease.revoke"] = {wire::LeasesTouched{.leases = {kRevokedLease}}.to_json()};
  return run(
      {.verb = Revoke{.message = {.lease = kRevokedLease}, .wait = true, .timeout_ms = timeout_ms}},
      broker.dependencies());
}

}  // namespace

TEST_CASE("revoke --wait: the broker answers once for the fence, and once for the free memory") {
  WaitingBroker broker;
  broker.replies["lease.wait"] = {waited({lease_view(kRevokedLease, LeaseState::Fenced)}),
                                  waited({fenced_with_clocks()})};

  REQUIRE(revoke_and_wait(broker));

  REQUIRE(broker.calls.size() == 3);
  const auto fence = wire::LeaseWait::from_json(broker.calls[1].second).value();
  const auto free = wire::LeaseWait::from_json(broker.calls[2].second).value();
  CHECK(fence.leases == std::vector{kRevokedLease});
  CHECK_FALSE(fence.until_free);
  CHECK(fence.timeout_ms == 100);
  CHECK(free.until_free);
  CHECK(broker.waits.empty());
  for (const char* clock : {"1.0 µs", "2.0 µs", "3.0 µs", "4.0 µs", "LaunchQuiet"}) {
    CHECK(broker.out.str().find(clock) != std::string::npos);
  }
}

TEST_CASE(
    "revoke: a tenant without a live lease is an error that says so, with and without --wait") {
  WaitingBroker broker;
  broker.replies["lease.revoke"] = {wire::LeasesTouched{}.to_json()};
  const auto done =
      run({.verb = Revoke{.message = {.tenant = TenantId{"ann"}}, .wait = GENERATE(false, true)}},
          broker.dependencies());
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::UnknownLease);
  CHECK(done.error().detail.starts_with("nothing was revoked: tenant ann has no live lease"));
  CHECK(broker.out.str().empty());
}

TEST_CASE("revoke --wait: a lease that is not fenced in time is named") {
  WaitingBroker broker;
  broker.replies["lease.wait"] = {waited({}, {lease_view(kRevokedLease, LeaseState::Revoked)})};

  const auto done = revoke_and_wait(broker);

  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::TimedOut);
  CHECK(done.error().detail.contains("1.1 is Revoked"));
  CHECK(done.error().detail.ends_with("see `brokerctl timeline 1.1`"));
}

TEST_CASE("revoke --wait: quarantined memory is an error after the table") {
  WaitingBroker broker;
  auto view = fenced_with_clocks();
  view.clocks.reuse_ns = -1;
  view.quarantined_extents = 1;
  broker.replies["lease.wait"] = {waited({view})};

  const auto done = revoke_and_wait(broker);

  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::StillWritable);
  CHECK(done.error().detail.find("brokerctl quarantine list") != std::string::npos);
  CHECK(broker.out.str().find("LaunchQuiet") != std::string::npos);
  CHECK(broker.waits.empty());
}

TEST_CASE("revoke --wait: the wait for reusable memory is bounded") {
  WaitingBroker broker;
  const auto fenced = lease_view(kRevokedLease, LeaseState::Fenced);
  broker.replies["lease.wait"] = {waited({fenced}), waited({}, {fenced})};
  const TimePoint start = broker.clock.now();

  REQUIRE(revoke_and_wait(broker));

  CHECK(broker.clock.now() - start == std::chrono::milliseconds(500));
  CHECK(broker.out.str().find("LaunchQuiet") != std::string::npos);
}

TEST_CASE("revoke --wait: a slot that is in use again by then hides nothing of the fence") {
  WaitingBroker broker;
  const wire::LeaseView reused{.lease = kRevokedLease, .state = LeaseState::Fenced};
  broker.replies["lease.wait"] = {waited({fenced_with_clocks()}), waited({reused})};

  REQUIRE(revoke_and_wait(broker));

  CHECK(broker.out.str().contains("LaunchQuiet"));
  CHECK(broker.out.str().contains("3.0 µs"));
}

TEST_CASE("revoke --wait: an interrupt reports the state of the lease") {
  WaitingBroker broker;
  broker.waits_left = 0;
  const auto fenced = lease_view(kRevokedLease, LeaseState::Fenced);
  broker.replies["lease.wait"] = {waited({}, {lease_view(kRevokedLease, LeaseState::Revoked)}),
                                  waited({fenced}), waited({}, {fenced})};

  CHECK(revoke_and_wait(broker, 300).error().detail ==
        "interrupted; lease 1.1 is Revoked and stays revoked; see `brokerctl timeline 1.1`");
  CHECK(revoke_and_wait(broker, 300)
            .error()
            .detail.starts_with("interrupted; the leases are Fenced"));
}

TEST_CASE("revoke --wait: a page of leases that are over is followed by a call for the others") {
  WaitingBroker broker;
  constexpr LeaseId kOther{2, 7};
  const auto first = fenced_with_clocks();
  auto second = fenced_with_clocks();
  second.lease = kOther;
  wire::Json page = waited({first});
  page["open"] = 1;  // left out, because the line is full
  broker.replies["lease.revoke"] = {
      wire::LeasesTouched{.leases = {kRevokedLease, kOther}}.to_json()};
  broker.replies["lease.wait"] = {page, waited({second}), waited({first, second})};

  REQUIRE(run({.verb = Revoke{.message = {.tenant = TenantId{"A"}}, .wait = true}},
              broker.dependencies()));

  REQUIRE(broker.calls.size() == 4);
  CHECK(wire::LeaseWait::from_json(broker.calls[2].second).value().leases == std::vector{kOther});
  CHECK(broker.out.str().find("1.1") < broker.out.str().find("2.7"));
}

TEST_CASE("revoke --wait: a reply that names no lease at all is malformed") {
  WaitingBroker broker;
  broker.replies["lease.wait"] = {waited({})};

  CHECK(revoke_and_wait(broker).error().code == Errc::MalformedMessage);
}
