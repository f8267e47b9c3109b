// A step that ends after the deadline of a lease commits nothing for it.
#include <catch2/catch.hpp>

#include "tests/support/engine_rig.hpp"

namespace leasehold::testing {
namespace {

using std::chrono::seconds;

/// Moves the clock once, when the first unit of a step has polled: after the last moment at which a
/// step checks deadlines before it computes. No watcher of deadlines runs in the rig.
class ClockMover final : public GateProbe {
 public:
  void unit_polled(std::uint32_t, LaunchSite, std::uint16_t, SequenceMask) override {
    if (by != Duration::zero()) clock->advance(std::exchange(by, Duration::zero()));
  }
  ManualClock* clock = nullptr;
  Duration by{};
};

constexpr std::uint32_t kTokens = 12;

struct DeadlineRig {
  DeadlineRig() { mover.clock = &rig.clock(); }

  LeaseId lease_for(Duration time) {
    const LeaseId lease = rig.grant("t");
    rig.set_deadline(lease, rig.clock().now() + time);
    return lease;
  }
  PromptRequest request(const std::string& id, LeaseId lease) {
    return rig.request("t", lease, id, rig.encode("Once upon a time"), kTokens);
  }
  /// The tokens of a text that nothing disturbs.
  std::vector<TokenId> undisturbed() {
    REQUIRE(rig.submit(request("whole", rig.grant("t"))));
    rig.run();
    return rig.outcome("whole").tokens;
  }
  void step_until(const std::string& id, std::size_t tokens) {
    while (rig.outcome(id).tokens.size() < tokens) REQUIRE(rig.step());
  }

  ClockMover mover;
  EngineRig rig{{.probe = &mover}};
};

}  // namespace

TEST_CASE("commit: a step that ends at the lease's deadline commits nothing for the lease") {
  DeadlineRig self;
  const LeaseId lease = self.lease_for(seconds(10));
  REQUIRE(self.rig.submit(self.request("r", lease)));
  self.step_until("r", 3);
  self.mover.by = seconds(10);
  const StepReport report = self.rig.step().value();
  CHECK(self.mover.by == Duration::zero());
  CHECK(report.summary.emitted_tokens == 0);
  CHECK(report.summary.per_seq_leases.empty());
  CHECK(self.rig.outcome("r").tokens.size() == 3);
  const Completed& end = self.rig.completion("r");
  CHECK(end.reason == CompletionReason::Revoked);
  CHECK(end.revocation->reason == RevokeReason::TtlExpired);
  CHECK(end.revocation->is_local);
  CHECK(end.emitted_tokens == 3);
}

TEST_CASE("commit: a step that ends just before the deadline commits, and so do other leases") {
  DeadlineRig self;
  const LeaseId early = self.lease_for(seconds(10));
  const LeaseId late = self.lease_for(seconds(10) + Duration(1));
  REQUIRE(self.rig.submit(self.request("early", early)));
  REQUIRE(self.rig.submit(self.request("late", late)));
  self.step_until("early", 3);
  self.step_until("late", 3);
  const std::size_t before = self.rig.outcome("early").tokens.size();
  const std::size_t late_before = self.rig.outcome("late").tokens.size();
  self.mover.by = seconds(10);
  const StepReport report = self.rig.step().value();
  CHECK(report.summary.per_seq_leases == std::vector{late});
  CHECK(self.rig.outcome("early").tokens.size() == before);
  CHECK(self.rig.outcome("late").tokens.size() == late_before + 1);
}

TEST_CASE("commit: a text that a deadline ended goes on under another lease with the same tokens") {
  DeadlineRig self;
  const std::vector<TokenId> whole = self.undisturbed();
  const LeaseId lease = self.lease_for(seconds(10));
  REQUIRE(self.rig.submit(self.request("r", lease)));
  self.step_until("r", 5);
  self.mover.by = seconds(10);
  REQUIRE(self.rig.step());
  PromptRequest again = self.request("again", self.lease_for(seconds(10)));
  again.emitted = self.rig.outcome("r").tokens;
  again.rebound_from = lease;
  REQUIRE(self.rig.submit(again));
  self.rig.run();
  std::vector<TokenId> both = self.rig.outcome("r").tokens;
  const std::vector<TokenId>& rest = self.rig.outcome("again").tokens;
  both.insert(both.end(), rest.begin(), rest.end());
  CHECK(both == whole);
}

TEST_CASE("commit: while the broker is disconnected, a passed deadline ends with BrokerLost") {
  DeadlineRig self;
  REQUIRE(self.rig.submit(self.request("r", self.lease_for(seconds(10)))));
  self.step_until("r", 3);
  self.rig.set_broker_disconnected(true);
  self.mover.by = seconds(10);
  REQUIRE(self.rig.step());
  CHECK(self.rig.completion("r").error->code == Errc::BrokerLost);
}

}  // namespace leasehold::testing
