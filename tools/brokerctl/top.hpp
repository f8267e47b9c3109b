/// `brokerctl top`: shows the broker's activity, refreshed at an interval.
#pragma once

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// On a terminal, draws until the user ends it. With Json, with `once`, or without a terminal,
/// prints one view of two samples that are one interval apart. Errors: those of the calls;
/// MalformedMessage.
Result<void> show_top(const ShowTop& top, Output output, const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
