/// The cell that this host is a member of, as its agent says (tools/cell/README.md).
///
/// Not journaled: after a restart no lease of the cell's tenants is granted or renewed until the
/// agent has sent the ceiling again.
#pragma once

#include <cstdint>
#include <optional>

#include "broker/books/ids.hpp"
#include "common/clock.hpp"
#include "ipc/control/messages/common.hpp"

namespace leasehold {

struct Cell {
  std::optional<CellName> name;   ///< Empty: no agent has attached yet.
  ConnectionId agent;             ///< Zero: none is connected.
  std::uint64_t incarnation = 0;  ///< 0: not a member.
  TimePoint ceiling;              ///< Leases of the cell's tenants end here. Zero: at once.
  TimePoint heard_at;             ///< When the newest ceiling arrived. Zero: none has.
};

}  // namespace leasehold
