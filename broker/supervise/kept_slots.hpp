/// What recovery is told of a lease table that outlived its broker.
#pragma once

#include <vector>

#include "broker/recovery/recovery.hpp"
#include "ipc/table/lease_table.hpp"

namespace leasehold {

/// As it stands, slot by slot; whether that is believed is recovery's business.
std::vector<KeptSlot> kept_slots(const LeaseTable& table);

}  // namespace leasehold
