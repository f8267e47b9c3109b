/// Events of records, and what the judge finds in a record that a test has spoiled.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/checks/runner/record.hpp"

namespace leasehold::runner {

/// Fenced with proof.
events::StampedEvent lease_event(std::int64_t ns, LeaseState state, LeaseId lease,
                                 const std::string& tenant,
                                 RevokeReason reason = RevokeReason::None);
events::StampedEvent extent_event(std::int64_t ns, std::uint64_t extent, const std::string& state,
                                  LeaseId lease);
TenantEvent reported_event(std::int64_t ns, const std::string& event, LeaseId lease,
                           const std::string& scope = "");

using Spoil = std::function<void(Record&)>;

/// The promises of the checks that fail after `spoil` has changed the good record.
std::vector<std::string> broken(Record good, const Spoil& spoil);

/// Exactly one check fails, and its promise contains `about`.
void check_finds(Record good, const std::string& about, const Spoil& spoil);

/// A change of a good record.
struct Change {
  const char* what;
  const char* breaks;  ///< Part of the only promise that it breaks; null: it breaks none.
  Spoil spoil;
};
void check_changes(const Record& good, std::span<const Change> changes);

/// The check whose promise contains `about` fails.
bool finds(const Record& record, const std::string& about);

}  // namespace leasehold::runner
