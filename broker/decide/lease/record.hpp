/// Marks an object as changed and appends the event of the change.
///
/// A decider calls these functions after every change: the journal writes only the objects that are
/// marked here.
#pragma once

#include <string_view>

#include "broker/decide/decision.hpp"

namespace leasehold {

void record_lease(Decision& decision, const LeaseRecord& record);

/// `owner` is null for an extent that no open lease lists.
void record_extent(Decision& decision, ExtentId extent, const LeaseRecord* owner);
void record_region(Decision& decision, const WeightsRegion& region, std::string_view state);

/// Records what an operator did or tried, as an event and a journal row.
void record_operator_action(Decision& decision, const journal::OperatorActionRow& action);

/// Stores the value of the clock in the lease, unless it has one already, and adds it to the
/// broker's history if the lease did not end normally. Precondition: the lease is not Live.
void note_latency(Decision& decision, LeaseRecord& record, RevokeClock clock,
                  Duration since_word_stored);

}  // namespace leasehold
