// Holder → broker: acquire, replace, renew, hold, query, release, grow, shrink.
#include "ipc/control/messages/holder.hpp"

#include "ipc/control/messages/codec.hpp"
#include "ipc/control/messages/limits.hpp"

namespace leasehold::wire {
void describe(Is<LeaseAcquire> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("blocks", m.blocks, kBlocksOrZero);
  fields.field("ttl_ms", m.ttl_ms, kUpToOneDay_ms);
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("model", m.model);
  fields.field("text_identity", m.text_identity);
  fields.with_default("min_context", m.min_context, 0u);
  fields.field("replaces", m.replaces);
  fields.field("api_key", m.api_key, TextRule::Sentence);
  fields.with_default("scavenger", m.scavenger, false);
  fields.field("request_id", m.request_id);
}

void describe(Is<LeaseAcquired> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("token", m.token, TextRule::NonEmpty);
  fields.field("address", m.address, TextRule::SocketPath);
  fields.field("worker", m.worker, TextRule::Name);
  fields.with_default("arithmetic", m.arithmetic, {}, Choice{kArithmetics});
  fields.field("text_identity", m.text_identity);
  fields.with_default("max_context", m.max_context, 0u);
  fields.field("deadline_boottime_ns", m.deadline_boottime_ns, kBoottime_ns);
  fields.field("ttl_ms", m.ttl_ms, kUpToOneDay_ms);
  fields.field("blocks", m.blocks);
  fields.with_default("adopted_blocks", m.adopted_blocks, 0u);
  fields.with_default("last_deadline_boottime_ns", m.last_deadline_boottime_ns, std::int64_t{0},
                      kBoottime_ns);
}

void describe(Is<LeaseReplace> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("mode", m.mode, EnumCount{kRebindModeCount});
  fields.with_default("any_arithmetic", m.any_arithmetic, false);
  fields.field("request_id", m.request_id);
}

void describe(Is<LeaseRenew, LeaseRelease> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("request_id", m.request_id);
}

void describe(Is<LeaseRenewed> auto& m, auto& fields) {
  fields.field("deadline_boottime_ns", m.deadline_boottime_ns, kBoottime_ns);
}

void describe(Is<LeaseHold> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("token", m.token, TextRule::NonEmpty);
  fields.field("request_id", m.request_id);
}

void describe(Is<LeaseGrow> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("extents", m.extents, kExtents);
  fields.with_default("pool", m.pool, {}, EnumCount{kMemoryPoolCount});
  fields.field("request_id", m.request_id);
}

void describe(Is<LeaseShrink> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("extents", m.extents, kExtents);
  fields.field("request_id", m.request_id);
}

void describe(Is<LeaseResized> auto& m, auto& fields) {
  fields.field("extents", m.extents);
  fields.field("blocks", m.blocks);
}

void describe(Is<LeaseQuery> auto& m, auto& fields) {
  fields.field("lease", m.lease);
}

void describe(Is<LeaseStatus> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("scope", m.scope, EnumCount{kLeaseScopeCount});
  fields.field("state", m.state, EnumCount{4});
  fields.field("reason", m.reason, EnumCount{kRevokeReasonCount});
  fields.field("deadline_boottime_ns", m.deadline_boottime_ns, kBoottime_ns);
  fields.field("drain_deadline_boottime_ns", m.drain_deadline_boottime_ns, kBoottime_ns);
  fields.field("blocks", m.blocks);
}

void describe(Is<LeaseRevoked> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("scope", m.scope, EnumCount{kLeaseScopeCount});
  fields.field("reason", m.reason, EnumCount{kRevokeReasonCount});
}

template struct Message<LeaseAcquire>;
template struct Message<LeaseAcquired>;
template struct Message<LeaseReplace>;
template struct Message<LeaseRenew>;
template struct Message<LeaseRenewed>;
template struct Message<LeaseHold>;
template struct Message<LeaseRelease>;
template struct Message<LeaseQuery>;
template struct Message<LeaseStatus>;
template struct Message<LeaseRevoked>;
template struct Message<LeaseGrow>;
template struct Message<LeaseShrink>;
template struct Message<LeaseResized>;

}  // namespace leasehold::wire
