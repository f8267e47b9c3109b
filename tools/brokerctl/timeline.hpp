/// The steps of one revocation: when each happened, or why it has no time.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "ipc/control/messages.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {

struct TimelineStep {
  std::string name;  ///< "granted", "revoked", "refused", "error", "quiet", "fenced", …
  std::optional<TimePoint> at;
  /// What happened. Without `at`: why the step did not happen or its time is unknown.
  std::string note;
};

/// Returns the steps granted, revoked, refused, error, quiet, fenced, reusable and rebound. A
/// published text has no error and rebound; a drained lease also has "drain end". Ordered by time;
/// steps without a time come last. Pure.
std::vector<TimelineStep> timeline_of(const wire::LeaseView& lease);

/// Columns: boot time, time since the revocation, time since the previous step that has a time.
cli::Table timeline_table(const std::vector<TimelineStep>& steps);

/// {"lease", "scope", "tenant", "worker", "state", "steps": [{"step", "at_boottime_ns",
/// "since_revoked_ns", "since_previous_ns", "note"} or {"step", "missing"}]}
wire::Json timeline_json(const wire::LeaseView& lease, const std::vector<TimelineStep>& steps);

}  // namespace leasehold::brokerctl
