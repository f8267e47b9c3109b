#include "worker/engine/leases/lease_checks.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <vector>

#include "ipc/table/lease_table.hpp"
#include "tests/support/required.hpp"

namespace leasehold::testing {
namespace {

constexpr WorkerId kWorker{0};
constexpr LeaseId kLease{3, 7};

/// Records the leases that were found revoked.
class RecordingObserver final : public RevocationObserver {
 public:
  void completed_early(const Completed&, const events::ForwardRevoked&,
                       TimePoint) noexcept override {}
  void lease_found_revoked(const events::ForwardRevoked& what, TimePoint) noexcept override {
    found.push_back(what);
  }
  void refusing_unit_ended() noexcept override {}

  std::vector<events::ForwardRevoked> found;
};

/// One lease in a table that the test writes as the broker does.
struct CheckedLease {
  CheckedLease() { table.grant(kLease, TimePoint{}); }

  void store(LeaseState state, RevokeReason reason = RevokeReason::Operator) {
    const LeaseTable::LeaseChange flip{kLease, state, reason};
    table.store_words(kWorker, {&flip, 1}, clock.now());
  }
  void expire() {
    table.set_deadline(kLease, clock.now() + std::chrono::seconds(1));
    clock.advance(std::chrono::seconds(1));
  }
  void drain() { table.set_drain_deadline(kLease, clock.now() + std::chrono::seconds(1)); }
  Errc refusal() const { return checks.check_usable(kLease).error().code; }

  LeaseTable table = required(LeaseTable::create(8));
  TableReader reader = TableReader::in_process(table);
  ManualClock clock;
  RecordingObserver observer;
  std::atomic<bool> broker_disconnected{false};
  LeaseChecks checks{{.table = &reader,
                      .clock = &clock,
                      .observer = &observer,
                      .broker_disconnected = &broker_disconnected}};
};

}  // namespace

TEST_CASE("lease checks: a live lease accepts requests and ends none") {
  const CheckedLease rig;
  CHECK(rig.checks.check_usable(kLease));
  CHECK_FALSE(rig.checks.completion_for(kLease));
}

TEST_CASE("lease checks: a revoked lease ends requests with the reason in its word") {
  CheckedLease rig;
  rig.store(LeaseState::Revoked, RevokeReason::PreemptedByPriority);
  const auto completed = rig.checks.completion_for(kLease);
  REQUIRE(completed);
  CHECK(completed->reason == CompletionReason::Revoked);
  CHECK(completed->revocation->lease == kLease);
  CHECK(completed->revocation->reason == RevokeReason::PreemptedByPriority);
  CHECK(rig.refusal() == Errc::LeaseRevoked);
}

TEST_CASE("lease checks: a fenced lease, and an earlier generation of a slot, are fenced") {
  CheckedLease rig;
  CHECK(rig.checks.check_usable({kLease.slot, kLease.generation - 1}).error().code ==
        Errc::LeaseFenced);
  rig.store(LeaseState::Revoked);
  rig.store(LeaseState::Fenced);
  CHECK(rig.refusal() == Errc::LeaseFenced);
}

TEST_CASE("lease checks: a lease past its deadline is expired, or lost with the broker") {
  CheckedLease rig;
  rig.expire();
  const auto completed = rig.checks.completion_for(kLease);
  REQUIRE(completed);
  CHECK(completed->revocation->reason == RevokeReason::TtlExpired);
  CHECK(completed->revocation->is_local);
  CHECK(rig.refusal() == Errc::LeaseRevoked);

  rig.broker_disconnected = true;
  CHECK(rig.refusal() == Errc::BrokerLost);
}

TEST_CASE("lease checks: the observer learns of a revoked lease, not of an expired one") {
  CheckedLease rig;
  rig.expire();
  rig.checks.report_found_revoked(kLease);
  CHECK(rig.observer.found.empty());

  rig.store(LeaseState::Revoked);
  rig.clock.advance(std::chrono::milliseconds(2));
  rig.checks.report_found_revoked(kLease);
  REQUIRE(rig.observer.found.size() == 1);
  CHECK(rig.observer.found[0].lease == kLease);
  CHECK(rig.observer.found[0].since_flip_ns == 2'000'000);
}

TEST_CASE("lease checks: a draining lease is drained once, when its last request has ended") {
  CheckedLease rig;
  Tenancies tenancies(16);
  tenancies.add({.lease = kLease, .tenant = {"t"}});
  tenancies.at(kLease).running = 1;
  rig.drain();
  CHECK(rig.refusal() == Errc::Draining);
  CHECK_FALSE(rig.checks.completion_for(kLease));
  CHECK(rig.checks.take_drained(tenancies).empty());

  tenancies.at(kLease).running = 0;
  CHECK(rig.checks.take_drained(tenancies) == std::vector{kLease});
  CHECK(rig.checks.take_drained(tenancies).empty());
  rig.checks.repeat_drained();
  CHECK(rig.checks.take_drained(tenancies) == std::vector{kLease});
}

}  // namespace leasehold::testing
