/// Verbs that print until a limit, or until the user interrupts: events, steps and top.
#pragma once

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// Writes the selected events to `out`: one line each for people; with Json one document, or one
/// object per line when following. The broker keeps a bounded number of events. Each gap left by
/// events that it dropped before they were read is reported as one notice ("events_missed").
/// Returns when the list ends, the limit is reached, or the user interrupts.
/// Errors: those of the call; MalformedMessage.
Result<void> show_events(const ListEvents& query, Output output, const Dependencies& dependencies);

/// Requests sampling from the broker, then polls the newest sample of each worker and writes
/// samples that it has not shown: a table with its titles first, or with Json one object per line.
/// Steps between two samples, and samples between two polls, are not shown. Returns at the limit or
/// when the user interrupts. Errors: those of the call; MalformedMessage.
Result<void> show_steps(const WatchSteps& watch, Output output, const Dependencies& dependencies);

/// On a terminal, draws until the user ends it. With Json, with `once`, or without a terminal,
/// prints one view of two samples that are one interval apart. Errors: those of the calls;
/// MalformedMessage.
Result<void> show_top(const ShowTop& top, Output output, const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
