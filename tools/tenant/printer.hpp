/// Prints session events: text and remarks for people, JSON for programs. Threads: one at a time.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>

#include "common/clock.hpp"
#include "ipc/client/session_event.hpp"

namespace leasehold::tenant {

/// One JSON object: {"event": name, "at_boottime_ns": t, …}. Names: acquired, submitted, token,
/// revoked, rebound, retry, broker_lost. The last event is completed, or failed with the error
/// code.
wire::Json to_json(const client::SessionEvent& event, TimePoint at);

struct TextOutput {
  std::ostream& stream;
  bool is_terminal = false;  ///< Control characters but newline and tab become spaces.
};

/// Writes the tokens' text to `out` as it arrives, and remarks and errors to `notes`.
void print_text(const client::SessionEvent& event, TextOutput out, std::ostream& notes);

}  // namespace leasehold::tenant
