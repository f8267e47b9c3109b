/// Prints the broker's events: past events page by page, then new events as they arrive.
#pragma once

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// Writes the selected events to `out`: one line each for people; with Json one document, or one
/// object per line when following. The broker keeps a bounded number of events. Each gap left by
/// events that it dropped before they were read is reported as one notice ("events_missed").
/// Returns when the list ends, the limit is reached, or the user interrupts.
/// Errors: those of the call; MalformedMessage.
Result<void> show_events(const ListEvents& query, Output output, const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
