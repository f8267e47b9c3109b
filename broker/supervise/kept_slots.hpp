/// Reads a kept lease table for recovery.
#pragma once

#include <vector>

#include "broker/recovery/recovery.hpp"
#include "ipc/table/lease_table.hpp"

namespace leasehold {

/// The contents of every slot, unchecked; recovery validates them.
std::vector<KeptSlot> kept_slots(const LeaseTable& table);

}  // namespace leasehold
