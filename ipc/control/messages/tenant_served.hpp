/// The fields of TenantServed, which is a message and a part of TenantView.
#pragma once

#include "ipc/control/messages/codec.hpp"
#include "ipc/control/messages/worker.hpp"

namespace leasehold::wire {

void describe(Is<TenantServed> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("tokens", m.tokens);
  fields.field("hit_blocks", m.hit_blocks);
  fields.field("hit_tokens", m.hit_tokens);
  fields.field("evicted_blocks", m.evicted_blocks);
  fields.field("preemptions", m.preemptions);
  fields.field("cross_tenant_hits", m.cross_tenant_hits);
  fields.field("cached_blocks", m.cached_blocks);
  fields.field("shared_hit_blocks", m.shared_hit_blocks);
}

}  // namespace leasehold::wire
