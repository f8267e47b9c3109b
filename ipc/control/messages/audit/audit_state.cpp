// What the audit chain counts.
#include "ipc/control/messages/audit/audit_state.hpp"

#include "ipc/control/messages/audit/lease_counts.hpp"
#include "ipc/control/messages/codec.hpp"

namespace leasehold::wire {

void describe(Is<AuditState> auto& m, auto& fields) {
  fields.field("leases", m.leases);
  fields.field("gaps", m.gaps);
  fields.field("waiting", m.waiting);
  fields.field("key_is_unlinked", m.key_is_unlinked);
}

void describe(Is<StatusOfAudit> auto& m, auto& fields) {
  fields.field("audit", m.audit);
}

template struct Message<AuditState>;
template struct Message<StatusOfAudit>;

}  // namespace leasehold::wire
