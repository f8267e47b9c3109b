#include "tests/unit/checks/runner/spoiled_record.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>

#include "tests/checks/runner/check.hpp"

namespace leasehold::runner {

events::StampedEvent lease_event(std::int64_t ns, LeaseState state, LeaseId lease,
                                 const std::string& tenant, RevokeReason reason) {
  return {events::LeaseStateChanged{.lease = lease,
                                    .state = state,
                                    .reason = reason,
                                    .tenant = tenant,
                                    .proof = state == LeaseState::Fenced ? "LaunchQuiet" : ""},
          TimePoint{ns}};
}

events::StampedEvent extent_event(std::int64_t ns, std::uint64_t extent, const std::string& state,
                                  LeaseId lease) {
  return {events::RegionStateChanged{.region = extent,
                                     .kind = "extent",
                                     .state = state,
                                     .lease = state == "Free" ? "" : to_string(lease)},
          TimePoint{ns}};
}

TenantEvent reported_event(std::int64_t ns, const std::string& event, LeaseId lease,
                           const std::string& scope) {
  return {.event = event, .at = TimePoint{ns}, .lease = lease, .why = "operator", .scope = scope};
}

std::vector<std::string> broken(Record good, const Spoil& spoil) {
  spoil(good);
  std::vector<std::string> promises;
  for (const Check& check : judge(good)) {
    if (!check.ok) promises.push_back(check.promise);
  }
  return promises;
}

void check_finds(Record good, const std::string& about, const Spoil& spoil) {
  CAPTURE(about);
  const auto promises = broken(std::move(good), spoil);
  REQUIRE(promises.size() == 1);
  CHECK(promises.front().find(about) != std::string::npos);
}

void check_changes(const Record& good, std::span<const Change> changes) {
  for (const Change& change : changes) {
    CAPTURE(change.what);
    if (change.breaks != nullptr)
      check_finds(good, change.breaks, change.spoil);
    else
      CHECK(broken(good, change.spoil) == std::vector<std::string>{});
  }
}

bool finds(const Record& record, const std::string& about) {
  const auto checks = judge(record);
  const auto found = std::ranges::find_if(
      checks, [&](const Check& check) { return check.promise.contains(about); });
  REQUIRE(found != checks.end());
  return !found->ok;
}

}  // namespace leasehold::runner
