/// Prints sampled steps of the engines, one line each.
#pragma once

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// Requests sampling from the broker, then polls the newest sample of each worker and writes
/// samples that it has not shown: a table with its titles first, or with Json one object per line.
/// Steps between two samples, and samples between two polls, are not shown. Returns at the limit or
/// when the user interrupts. Errors: those of the call; MalformedMessage.
Result<void> show_steps(const WatchSteps& watch, Output output, const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
