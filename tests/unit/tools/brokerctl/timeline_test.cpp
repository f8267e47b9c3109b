#include "tools/brokerctl/timeline.hpp"

#include <catch2/catch.hpp>
#include <ranges>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

constexpr LeaseId kLease{1, 1};
constexpr std::int64_t kGranted = 1'000'000'000;
constexpr std::int64_t kRevoked = 2'000'000'000;

/// A revoked lease that has every time and clock.
wire::LeaseView complete_lease() {
  auto lease = lease_view(kLease, LeaseState::Fenced);
  lease.clocks = {.refuse_ns = 1'000, .error_ns = 2'000, .quiet_ns = 3'000, .reuse_ns = 9'000};
  lease.times = {.granted_boottime_ns = kGranted,
                 .revoked_boottime_ns = kRevoked,
                 .fenced_boottime_ns = kRevoked + 4'000,
                 .rebound_boottime_ns = kRevoked + 20'000};
  lease.replaced_by = LeaseId{2, 1};
  return lease;
}

const TimelineStep& step(const std::vector<TimelineStep>& steps, const std::string& name) {
  return *std::ranges::find(steps, name, &TimelineStep::name);
}

Result<void> show_timeline(FakeBroker& broker, LeaseId lease, Output output = Output::Table) {
  return run({.output = output, .verb = ShowTimeline{lease}}, broker.dependencies());
}

}  // namespace

TEST_CASE("timeline: a complete revocation has all steps in order, with both deltas") {
  FakeBroker broker;
  broker.replies["lease.list"] = {items({complete_lease()})};

  REQUIRE(show_timeline(broker, kLease, Output::Json));

  const auto document = wire::Json::parse(broker.out.str());
  std::vector<std::string> names;
  for (const auto& each : document.at("steps")) names.push_back(each.at("step"));
  CHECK(names == std::vector<std::string>{"granted", "revoked", "refused", "error", "quiet",
                                          "fenced", "reusable", "rebound"});
  const auto& fenced = document.at("steps").at(5);
  CHECK(fenced.at("at_boottime_ns") == kRevoked + 4'000);
  CHECK(fenced.at("since_revoked_ns") == 4'000);
  CHECK(fenced.at("since_previous_ns") == 1'000);
  CHECK(broker.calls.at(0).second == wire::Json{{"limit", 1}, {"after", 0}});
}

TEST_CASE("timeline: steps are ordered by time, and those without one come last") {
  auto lease = complete_lease();
  lease.clocks = {.refuse_ns = 5'000, .error_ns = 8'000, .quiet_ns = 3'000, .reuse_ns = -1};
  lease.drain_deadline_boottime_ns = kRevoked + 30'000;
  FakeBroker broker;
  broker.replies["lease.list"] = {items({lease})};

  REQUIRE(show_timeline(broker, kLease, Output::Json));

  const auto document = wire::Json::parse(broker.out.str());
  std::vector<std::string> names;
  for (const auto& each : document.at("steps")) {
    names.push_back(each.at("step"));
    CHECK(each.value("since_previous_ns", 0) >= 0);
  }
  CHECK(names == std::vector<std::string>{"granted", "revoked", "quiet", "fenced", "refused",
                                          "error", "rebound", "drain end", "reusable"});
  CHECK(document.at("steps").at(4).at("since_previous_ns") == 1'000);
  CHECK(document.at("steps").back().contains("missing"));
}

TEST_CASE("timeline: the table shows the deltas and the notes") {
  FakeBroker broker;
  broker.replies["lease.list"] = {items({complete_lease()})};

  REQUIRE(show_timeline(broker, kLease));

  for (const char* word :
       {"reason=operator", "4.0 µs", "11.0 µs", "2.000003", "LaunchQuiet", "2.1"}) {
    CHECK(broker.out.str().find(word) != std::string::npos);
  }
}

TEST_CASE("timeline: a step without a time says why") {
  auto lease = lease_view(kLease, LeaseState::Fenced);
  lease.proof = "ProcessExit";
  lease.times = {.revoked_boottime_ns = kRevoked, .fenced_boottime_ns = kRevoked + 4'000};
  const auto steps = timeline_of(lease);

  CHECK(step(steps, "refused").note.find("no unit polled it") != std::string::npos);
  CHECK(step(steps, "error").note.find("no request ran under it") != std::string::npos);
  CHECK(step(steps, "quiet").note.find("the proof is ProcessExit") != std::string::npos);
  CHECK(step(steps, "reusable").note.find("not unmapped") != std::string::npos);
  CHECK(step(steps, "rebound").note.find("no request") != std::string::npos);
  for (const char* name : {"refused", "error", "quiet", "reusable", "rebound"}) {
    CHECK_FALSE(step(steps, name).at);
  }
}

TEST_CASE("timeline: a published text or adapter has no holder, so no error of one and no rebind") {
  auto lease = complete_lease();
  lease.scope = GENERATE(wire::LeaseScope::Shared, wire::LeaseScope::Adapter);
  lease.tenant.clear();
  const auto steps = timeline_of(lease);
  for (const char* missing : {"error", "rebound"})
    CHECK(std::ranges::count(steps, missing, &TimelineStep::name) == 0);
  CHECK(step(steps, "quiet").at);
  CHECK(timeline_json(lease, steps).at("scope") == wire::name(lease.scope));
}

TEST_CASE("timeline: quarantined memory is not reusable") {
  auto lease = complete_lease();
  lease.clocks.reuse_ns = -1;
  lease.quarantined_extents = 2;
  const auto steps = timeline_of(lease);
  CHECK_FALSE(step(steps, "reusable").at);
  CHECK(step(steps, "reusable").note.find("2 of its extents") != std::string::npos);
}

TEST_CASE("timeline: a draining lease shows its deadline") {
  auto lease = lease_view(kLease, LeaseState::Live);
  lease.drain_deadline_boottime_ns = kRevoked;
  const auto steps = timeline_of(lease);
  CHECK(step(steps, "drain end").at == TimePoint{kRevoked});
  CHECK(step(steps, "drain end").note.find("no new work") != std::string::npos);
}

TEST_CASE(
    "timeline: a worker that stopped before the revocation is reported with the time before it") {
  auto lease = complete_lease();
  lease.clocks.refuse_ns = lease.clocks.error_ns = -1;
  lease.times.worker_stopped_boottime_ns = kRevoked - 2'800'000'000;
  lease.times.granted_boottime_ns = kRevoked - 6'000'000'000;
  const auto steps = timeline_of(lease);
  CHECK(step(steps, "error").note.find("stopped the lease 2.8 s before the revocation") !=
        std::string::npos);
  CHECK(step(steps, "refused").note.find("at the revocation") != std::string::npos);
}

TEST_CASE(
    "timeline: a live lease has no revocation, and a revoked one shows the unit it waits for") {
  const auto live = timeline_of(lease_view(kLease, LeaseState::Live));
  for (const auto& each : live | std::views::drop(1)) CHECK(each.note == "not revoked yet");

  auto lease = lease_view(kLease, LeaseState::Revoked);
  lease.times.revoked_boottime_ns = kRevoked;
  CHECK(step(timeline_of(lease), "quiet").note.find("has not ended") != std::string::npos);
  CHECK(step(timeline_of(lease), "reusable").note == "not fenced yet");
}

TEST_CASE("timeline: a reused slot and a lease that was never granted are different errors") {
  FakeBroker broker;
  broker.replies["lease.list"] = {items({lease_view({1, 5}, LeaseState::Live)})};

  CHECK(show_timeline(broker, {1, 4}).error().code == Errc::StaleGeneration);
  CHECK(show_timeline(broker, {1, 4}).error().detail.find("events --lease 1.4") !=
        std::string::npos);
  CHECK(show_timeline(broker, {1, 6}).error().code == Errc::UnknownLease);
  CHECK(show_timeline(broker, {9, 1}).error().code == Errc::UnknownLease);
  broker.replies["lease.list"] = {items({})};
  CHECK(show_timeline(broker, {1, 1}).error().code == Errc::UnknownLease);
}
