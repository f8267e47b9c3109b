/// Marks an object as changed and appends the event that says so.
///
/// A decider calls these after every change: the journal row is made from what is marked here.
#pragma once

#include <string_view>

#include "broker/decide/decision.hpp"

namespace leasehold {

void record_lease(Decision& decision, const LeaseRecord& record);

/// `owner` is null for an extent that no open lease lists.
void record_extent(Decision& decision, ExtentId extent, const LeaseRecord* owner);
void record_region(Decision& decision, const WeightsRegion& region, std::string_view state);

/// What an operator did or tried: an event, and a row in the journal.
void record_operator_action(Decision& decision, const journal::OperatorActionRow& action);

}  // namespace leasehold
