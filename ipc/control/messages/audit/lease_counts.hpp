/// The fields of LeaseCounts, which are part of several messages.
/// Internal to ipc/control: it includes all of nlohmann/json.
#pragma once

#include "ipc/control/messages/audit.hpp"
#include "ipc/control/messages/json_fields.hpp"

namespace leasehold::wire {

void describe(Is<LeaseCounts> auto& m, auto& fields) {
  fields.field("granted", m.granted);
  fields.field("open", m.open);
  fields.field("quarantined", m.quarantined);
  fields.field("held", m.held);
  fields.field("erased", m.erased);
}

}  // namespace leasehold::wire
