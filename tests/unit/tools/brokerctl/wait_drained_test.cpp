#include "tools/brokerctl/wait_drained.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

constexpr LeaseId kFirst{1, 1};
constexpr LeaseId kSecond{2, 5};

wire::LeaseView ended(LeaseId lease, RevokeReason reason) {
  wire::LeaseView view = lease_view(lease, LeaseState::Fenced);
  view.reason = reason;
  return view;
}

Result<void> drain_and_wait(FakeBroker& broker) {
  broker.replies["lease.drain"] = {wire::LeasesTouched{.leases = {kFirst, kSecond}}.to_json()};
  return run({.verb = Drain{.message = {.worker = "w1"}, .wait = true}}, broker.dependencies());
}

}  // namespace

TEST_CASE("drain --wait: polls until every drained lease has ended, and shows progress") {
  FakeBroker broker;
  const auto other = lease_view({3, 1}, LeaseState::Live);
  broker.replies["lease.list"] = {
      items({lease_view(kFirst, LeaseState::Live), lease_view(kSecond, LeaseState::Live), other}),
      items({ended(kFirst, RevokeReason::Released), lease_view(kSecond, LeaseState::Revoked)}),
      // The slot of the first has a new lease.
      items({lease_view({1, 2}, LeaseState::Live), ended(kSecond, RevokeReason::Released)})};

  REQUIRE(drain_and_wait(broker));

  using Progress = std::pair<std::size_t, std::size_t>;
  CHECK(broker.progress == std::vector<Progress>{{0, 2}, {1, 2}, {2, 2}});
  CHECK(broker.waits.size() == 2);
  CHECK(broker.out.str().find("2.5") != std::string::npos);
  CHECK(broker.out.str().find("released") != std::string::npos);
}

TEST_CASE("drain --wait: a lease that the end of the grace revoked is an error after the table") {
  FakeBroker broker;
  broker.replies["lease.list"] = {
      items({ended(kFirst, RevokeReason::Released), ended(kSecond, RevokeReason::DrainDeadline)})};

  const auto done = drain_and_wait(broker);

  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::LeaseRevoked);
  CHECK(done.error().detail.find("1 of 2") != std::string::npos);
  CHECK(done.error().detail.find("2.5") != std::string::npos);
  CHECK(broker.out.str().find("drain_deadline") != std::string::npos);
}

TEST_CASE("drain --wait: an interrupt ends the wait with what is left") {
  FakeBroker broker;
  broker.waits_left = 0;
  broker.replies["lease.list"] = {items({lease_view(kFirst, LeaseState::Live)})};

  const auto done = drain_and_wait(broker);

  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::TimedOut);
  CHECK(done.error().detail.find("1 of 2 leases are still draining") != std::string::npos);
}
