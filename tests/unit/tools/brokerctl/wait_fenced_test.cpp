#include "tools/brokerctl/wait/wait.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

constexpr LeaseId kRevokedLease{1, 1};

wire::LeaseView fenced_with_clocks() {
  auto view = lease_view(kRevokedLease, LeaseState::Fenced);
  view.clocks = {.refuse_ns = 1'000, .error_ns = 2'000, .quiet_ns = 3'000, .reuse_ns = 4'000};
  return view;
}

Result<void> revoke_and_wait(FakeBroker& broker) {
  broker.replies["lease.revoke"] = {wire::LeasesTouched{.leases = {kRevokedLease}}.to_json()};
  return run({.verb = Revoke{.message = {.lease = kRevokedLease}, .wait = true, .timeout_ms = 100}},
             broker.dependencies());
}

}  // namespace

TEST_CASE("revoke --wait: polls until fenced and prints the four clocks") {
  FakeBroker broker;
  broker.replies["lease.list"] = {items({lease_view(kRevokedLease, LeaseState::Revoked)}),
                                  items({lease_view(kRevokedLease, LeaseState::Fenced)}),
                                  items({fenced_with_clocks()})};

  REQUIRE(revoke_and_wait(broker));

  CHECK(broker.waits.size() == 2);
  for (const char* clock : {"1.0 µs", "2.0 µs", "3.0 µs", "4.0 µs", "LaunchQuiet"}) {
    CHECK(broker.out.str().find(clock) != std::string::npos);
  }
}

TEST_CASE(
    "revoke: a tenant without a live lease is an error that says so, with and without --wait") {
  FakeBroker broker;
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
  FakeBroker broker;
  broker.replies["lease.list"] = {items({lease_view(kRevokedLease, LeaseState::Revoked)})};

  const auto done = revoke_and_wait(broker);

  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::TimedOut);
  CHECK(done.error().detail.contains("1.1 is Revoked"));
  CHECK(done.error().detail.ends_with("see `brokerctl timeline 1.1`"));
}

TEST_CASE("revoke --wait: quarantined memory is an error after the table") {
  FakeBroker broker;
  auto view = fenced_with_clocks();
  view.clocks.reuse_ns = -1;
  view.quarantined_extents = 1;
  broker.replies["lease.list"] = {items({view})};

  const auto done = revoke_and_wait(broker);

  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::StillWritable);
  CHECK(done.error().detail.find("brokerctl quarantine list") != std::string::npos);
  CHECK(broker.out.str().find("LaunchQuiet") != std::string::npos);
  CHECK(broker.waits.empty());
}

TEST_CASE("revoke --wait: the wait for reusable memory is bounded") {
  FakeBroker broker;
  broker.replies["lease.list"] = {items({lease_view(kRevokedLease, LeaseState::Fenced)})};

  REQUIRE(revoke_and_wait(broker));

  CHECK(broker.waits.size() == 50);
}

TEST_CASE("revoke --wait: an interrupt reports the state of the lease") {
  FakeBroker broker;
  broker.waits_left = 0;
  broker.replies["lease.list"] = {items({lease_view(kRevokedLease, LeaseState::Revoked)}),
                                  items({lease_view(kRevokedLease, LeaseState::Fenced)})};

  CHECK(revoke_and_wait(broker).error().detail ==
        "interrupted; lease 1.1 is Revoked and stays revoked; see `brokerctl timeline 1.1`");
  CHECK(revoke_and_wait(broker).error().detail.starts_with("interrupted; the leases are Fenced"));
}

TEST_CASE("revoke --wait: a lease that the broker no longer lists is an error") {
  FakeBroker broker;
  broker.replies["lease.list"] = {items({})};

  CHECK(revoke_and_wait(broker).error().code == Errc::UnknownLease);
}
