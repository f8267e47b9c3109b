/// The broker's events, page after page, and those that come while somebody looks.
#pragma once

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// Writes the events that were asked for: lines for people; with Json one document, or one object
/// per line while following. Events that the broker no longer had are told as one notice
/// ("events_missed"), never left out silently: its memory is bounded, and a reader that is too slow
/// meets that bound.
/// Errors: those of the call; MalformedMessage.
Result<void> show_events(const ListEvents& query, Output output, const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
