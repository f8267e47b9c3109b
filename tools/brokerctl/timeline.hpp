/// One revocation, step by step: what happened when, and why what is missing is missing.
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
  std::string name;  ///< "granted", "flip", "refused", "error", "quiet", "fenced", …
  std::optional<TimePoint> at;
  std::string note;  ///< What happened; without `at`: why nothing did, or why nobody knows.
};

/// flip, refused, error, quiet, fenced, reusable, rebound, with the grant before, and of a drained
/// lease until when it may finish. In the order of time, whatever has none last. Pure.
std::vector<TimelineStep> timeline_of(const wire::LeaseView& lease);

/// Boot time, since the flip, since the step before that is known.
cli::Table timeline_table(const std::vector<TimelineStep>& steps);

/// {"lease", "tenant", "worker", "state", "steps": [{"step", "at_boottime_ns", "since_flip_ns",
/// "since_previous_ns", "note"} or {"step", "missing"}]}
wire::Json timeline_json(const wire::LeaseView& lease, const std::vector<TimelineStep>& steps);

}  // namespace leasehold::brokerctl
