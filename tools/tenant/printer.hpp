/// Session events for people (text on one stream, remarks on another) and for programs.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>

#include "common/clock.hpp"
#include "tools/client/session_event.hpp"

namespace leasehold::tenant {

/// One JSON object: {"event": name, "at_boottime_ns": t, …}. Names: acquired, submitted, token,
/// revoked, rebound, retry, broker_lost; last comes completed, or failed with the error's code.
wire::Json to_json(const SessionEvent& event, TimePoint at);

/// The tokens' text to `out` as it comes; everything else as remarks to `notes`.
void print_text(const SessionEvent& event, std::ostream& out, std::ostream& notes);

}  // namespace leasehold::tenant
