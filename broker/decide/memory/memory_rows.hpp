/// The audit records of a decision about the memory of leases.
#pragma once

#include <cstdint>
#include <vector>

#include "broker/decide/decision.hpp"

namespace leasehold {

/// One LeaseGrantedRow for each lease that got memory, then one LeaseErasedRow for each lease whose
/// memory was settled or that was closed. Takes the changes from the books. Call it when the
/// decision is complete. `extent_size_bytes`: of the extents in the changes.
std::vector<journal::Row> memory_rows(Decision& decision, std::uint64_t extent_size_bytes);

}  // namespace leasehold
