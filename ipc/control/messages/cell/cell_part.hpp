/// The fields of CellPart, which is a reply and a field of TenantView.
#pragma once

#include "ipc/control/messages/cell/cell.hpp"
#include "ipc/control/messages/json_fields.hpp"

namespace leasehold::wire {

void describe(Is<CellPart> auto& m, auto& fields) {
  fields.field("incarnation", m.incarnation);
  fields.field("revision", m.revision);
  fields.field("may_run", m.may_run);
  fields.field("demand", m.demand);
  fields.with_default("uses", m.uses, std::uint64_t{0});
  fields.field("confirmed", m.confirmed);
}

}  // namespace leasehold::wire
