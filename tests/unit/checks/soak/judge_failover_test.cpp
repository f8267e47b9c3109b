// A holder whose client got its next lease before the old one was revoked need not hear of the end.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/checks/soak/judge.hpp"

namespace leasehold::soak::failover_test {
namespace {

constexpr LeaseId kOld{5, 3}, kNext{6, 1};
constexpr std::int64_t kRevoked = 20, kAccepted = 41;

events::StampedEvent lease(std::int64_t ns, LeaseState state, LeaseId id) {
  return {events::LeaseStateChanged{
              .lease = id,
              .state = state,
              .reason = state == LeaseState::Live ? RevokeReason::None : RevokeReason::WorkerGone,
              .tenant = "ann",
              .proof = ""},
          TimePoint{ns}};
}

demo::TenantEvent reported(std::int64_t ns, const std::string& event, LeaseId id) {
  return {.event = event, .at = TimePoint{ns}, .lease = id, .why = ""};
}

/// ann streams under the old lease and goes on under the next, which a worker accepts late.
bool misses_a_notice(std::int64_t next_granted) {
  BrokerInstance broker;
  broker.events = {lease(10, LeaseState::Live, kOld), lease(kRevoked, LeaseState::Revoked, kOld),
                   lease(next_granted, LeaseState::Live, kNext)};
  std::ranges::sort(broker.events, {}, &events::StampedEvent::at);
  TenantInstance ann{.tenant = "ann"};
  ann.record.reported = {reported(11, "acquired", kOld), reported(12, "submitted", kOld),
                         reported(kAccepted, "acquired", kNext)};
  const History history{.brokers = {broker}, .tenants = {ann}, .canaries = CanaryReport{}};
  const auto checks = judge(history);
  const auto found = std::ranges::find_if(checks, [](const demo::Check& check) {
    return check.promise.find("no holder got two reports") != std::string::npos;
  });
  REQUIRE(found != checks.end());
  return !found->ok;
}

}  // namespace

TEST_CASE("soak judge: a lease granted before the end of the one it follows excuses the notice") {
  CHECK_FALSE(misses_a_notice(15));
  CHECK(misses_a_notice(25));
}

}  // namespace leasehold::soak::failover_test
