#include "tools/brokerctl/wait_fenced.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

constexpr LeaseId kLease{1, 1};

wire::LeaseView fenced_with_clocks() {
  auto view = lease_view(kLease, LeaseState::Fenced);
  view.clocks = {.refuse_ns = 1'000, .error_ns = 2'000, .quiet_ns = 3'000, .reuse_ns = 4'000};
  return view;
}

Result<void> revoke_and_wait(FakeBroker& broker) {
  broker.answers["lease.revoke"] = {wire::LeasesTouched{.leases = {kLease}}.to_json()};
  return run({.verb = Revoke{.message = {.lease = kLease}, .wait = true, .timeout_ms = 100}},
             broker.dependencies());
}

}  // namespace

TEST_CASE("revoke --wait: polls until fenced and shows the four clocks") {
  FakeBroker broker;
  broker.answers["lease.list"] = {items({lease_view(kLease, LeaseState::Revoked)}),
                                  items({lease_view(kLease, LeaseState::Fenced)}),
                                  items({fenced_with_clocks()})};

  REQUIRE(revoke_and_wait(broker));

  CHECK(broker.waits.size() == 2);
  for (const char* clock : {"1.0 µs", "2.0 µs", "3.0 µs", "4.0 µs", "LaunchQuiet"}) {
    CHECK(broker.out.str().find(clock) != std::string::npos);
  }
}

TEST_CASE("revoke --wait: a lease that is never fenced is named when time is up") {
  FakeBroker broker;
  broker.answers["lease.list"] = {items({lease_view(kLease, LeaseState::Revoked)})};

  const auto done = revoke_and_wait(broker);

  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::TimedOut);
  CHECK(done.error().detail.find("1.1 is Revoked") != std::string::npos);
}

TEST_CASE("revoke --wait: memory that went to quarantine is shown, and is an error") {
  FakeBroker broker;
  auto view = fenced_with_clocks();
  view.clocks.reuse_ns = -1;
  view.quarantined_extents = 1;
  broker.answers["lease.list"] = {items({view})};

  const auto done = revoke_and_wait(broker);

  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::StillWritable);
  CHECK(done.error().detail.find("brokerctl quarantine list") != std::string::npos);
  CHECK(broker.out.str().find("LaunchQuiet") != std::string::npos);
  CHECK(broker.waits.empty());
}

TEST_CASE("revoke --wait: memory that does not come back is not waited for without end") {
  FakeBroker broker;
  broker.answers["lease.list"] = {items({lease_view(kLease, LeaseState::Fenced)})};

  REQUIRE(revoke_and_wait(broker));

  CHECK(broker.waits.size() == 50);
}

TEST_CASE("revoke --wait: an interrupt says that the revocation stands") {
  FakeBroker broker;
  broker.waits_left = 0;
  broker.answers["lease.list"] = {items({lease_view(kLease, LeaseState::Revoked)})};

  CHECK(revoke_and_wait(broker).error().detail.find("stands") != std::string::npos);
}

TEST_CASE("revoke --wait: a lease the broker no longer lists is an error, not success") {
  FakeBroker broker;
  broker.answers["lease.list"] = {items({})};

  CHECK(revoke_and_wait(broker).error().code == Errc::UnknownLease);
}
