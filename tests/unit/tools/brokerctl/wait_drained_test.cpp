#include "tools/brokerctl/wait/wait.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/waiting_broker.hpp"

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

wire::WorkerView worker(std::string state, std::string drain) {
  return {.worker = "w1", .pid = 7, .state = std::move(state), .drain = std::move(drain)};
}

wire::LeaseView revoked(LeaseId lease, TimePoint at) {
  wire::LeaseView view = lease_view(lease, LeaseState::Revoked);
  view.times.revoked_boottime_ns = at.boottime_ns;
  return view;
}

Result<void> drain_and_wait(WaitingBroker& broker) {
  broker.replies["lease.drain"] = {wire::LeasesTouched{.leases = {kFirst, kSecond}}.to_json()};
  if (broker.replies["worker.list"].empty())
    broker.replies["worker.list"] = {items<wire::WorkerView>({worker("ready", "drained")})};
  return run({.verb = Drain{.message = {.worker = "w1"}, .wait = true}}, broker.dependencies());
}

}  // namespace

TEST_CASE("drain: a tenant without a lease is printed as drained, with and without --wait") {
  WaitingBroker broker;
  broker.replies["lease.drain"] = {wire::LeasesTouched{}.to_json()};

  const Drain drain{.message = {.tenant = TenantId{"ann"}}, .wait = GENERATE(false, true)};
  REQUIRE(run({.verb = drain}, broker.dependencies()));

  CHECK(broker.out.str().contains("DRAINED"));
  CHECK(broker.out.str().contains("ann"));
}

TEST_CASE("drain --wait: waits until every drained lease has ended, and shows progress") {
  WaitingBroker broker;
  broker.replies["lease.wait"] = {
      waited({}, {lease_view(kFirst, LeaseState::Live), lease_view(kSecond, LeaseState::Live)}),
      waited({ended(kFirst, RevokeReason::Released)}, {lease_view(kSecond, LeaseState::Revoked)}),
      waited({ended(kSecond, RevokeReason::Released)})};

  REQUIRE(drain_and_wait(broker));

  using Progress = std::pair<std::size_t, std::size_t>;
  CHECK(broker.progress == std::vector<Progress>{{0, 2}, {1, 2}, {2, 2}});
  const auto last = broker.calls.at(broker.calls.size() - 2);  // before worker.list
  CHECK(wire::LeaseWait::from_json(last.second).value().leases == std::vector{kSecond});
  CHECK(broker.out.str().find("1.1") < broker.out.str().find("2.5"));
  CHECK(broker.out.str().find("released") != std::string::npos);
}

TEST_CASE("drain --wait: a lease that the end of the grace revoked is an error after the table") {
  WaitingBroker broker;
  broker.replies["lease.wait"] = {
      waited({ended(kFirst, RevokeReason::Released), ended(kSecond, RevokeReason::DrainDeadline)})};

  const auto done = drain_and_wait(broker);

  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::LeaseRevoked);
  CHECK(done.error().detail.find("1 of 2") != std::string::npos);
  CHECK(done.error().detail.find("2.5") != std::string::npos);
  CHECK(broker.out.str().find("drain_deadline") != std::string::npos);
}

TEST_CASE("drain --wait: any end that is not the tenant's is an error that names it") {
  WaitingBroker broker;
  broker.replies["lease.wait"] = {
      waited({ended(kFirst, RevokeReason::HolderGone), ended(kSecond, RevokeReason::WorkerGone)})};

  const auto done = drain_and_wait(broker);

  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::LeaseRevoked);
  CHECK(done.error().detail.find("2.5 (worker_gone)") != std::string::npos);
}

TEST_CASE("drain --wait: a lease whose end was not seen is an error, not a success") {
  WaitingBroker broker;
  wire::LeaseView unseen{.lease = kFirst, .state = LeaseState::Fenced};  // its slot is used again
  broker.replies["lease.wait"] = {waited({unseen, ended(kSecond, RevokeReason::Released)})};

  const auto done = drain_and_wait(broker);

  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::StaleGeneration);
  CHECK(done.error().detail.find("lease 1.1 ended") != std::string::npos);
}

TEST_CASE("drain --wait: a lease that is not fenced in time is named with its worker") {
  WaitingBroker broker;
  broker.clock.advance(std::chrono::hours(1));
  const TimePoint start = broker.clock.now();
  const bool is_revoked = GENERATE(true, false);
  broker.replies["lease.wait"] = {
      waited({ended(kFirst, RevokeReason::Released)},
             {is_revoked ? revoked(kSecond, start) : lease_view(kSecond, LeaseState::Live)})};

  const auto done = drain_and_wait(broker);

  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::TimedOut);
  CHECK(done.error().detail.find(is_revoked ? "lease 2.5 is Revoked, not Fenced, 30000 ms after "
                                              "its revocation: worker w"
                                            : "lease 2.5 is Live, not Fenced, 30000 ms after its "
                                              "grace: worker w") != std::string::npos);
  // The grace is 30 s as well.
  CHECK(broker.clock.now() - start == std::chrono::seconds(is_revoked ? 30 : 60));
}

TEST_CASE("drain --wait: leases of the worker that were revoked before are waited for") {
  WaitingBroker broker;
  constexpr LeaseId kEarlier{3, 1};
  broker.replies["lease.wait"] = {
      waited({ended(kFirst, RevokeReason::Released), ended(kSecond, RevokeReason::Released)},
             {lease_view(kEarlier, LeaseState::Revoked)}),
      waited({ended(kEarlier, RevokeReason::Operator)})};

  REQUIRE(drain_and_wait(broker));

  CHECK(wire::LeaseWait::from_json(broker.calls.at(1).second).value().worker == "w1");
  CHECK(broker.out.str().find("3.1") != std::string::npos);
}

TEST_CASE("drain --wait: a worker that is not drained at the end is an error that says which") {
  struct End {
    std::vector<wire::WorkerView> workers;
    Errc code;
    std::string says;
  };
  const auto end =
      GENERATE(values<End>({{{}, Errc::UnknownWorker, "worker w1 is gone"},
                            {{worker("lost", "drained")}, Errc::UnknownWorker, "worker w1 is lost"},
                            {{worker("gone", "drained"), worker("ready", "serving")},
                             Errc::IllegalTransition,
                             "worker w1 (process 7) serves"},
                            {{worker("ready", "draining")}, Errc::Draining, "has other leases"}}));
  WaitingBroker broker;
  broker.replies["lease.wait"] = {
      waited({ended(kFirst, RevokeReason::Released), ended(kSecond, RevokeReason::Released)})};
  broker.replies["worker.list"] = {items(end.workers)};

  const auto done = drain_and_wait(broker);

  REQUIRE_FALSE(done);
  CHECK(done.error().code == end.code);
  CHECK(done.error().detail.find(end.says) != std::string::npos);
}

TEST_CASE("drain --wait: an interrupt ends the wait with what is left") {
  WaitingBroker broker;
  broker.waits_left = 0;
  broker.replies["lease.wait"] = {
      waited({ended(kSecond, RevokeReason::Released)}, {lease_view(kFirst, LeaseState::Live)})};

  const auto done = drain_and_wait(broker);

  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::TimedOut);
  CHECK(done.error().detail.find("1 of 2 leases are still draining") != std::string::npos);
}
