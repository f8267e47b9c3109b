/// The audit records of a decision about the memory of leases.
#pragma once

#include <vector>

#include "broker/decide/decision.hpp"

namespace leasehold {

/// One LeaseGrantedRow for each lease that got memory, then one LeaseErasedRow for each lease whose
/// memory was settled or that was closed. Takes the changes from the books. Call it when the
/// decision is complete.
std::vector<journal::Row> memory_rows(Decision& decision);

}  // namespace leasehold
