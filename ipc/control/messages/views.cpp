// Broker → operator: what the lists show.
#include "ipc/control/messages/views.hpp"

#include "ipc/control/messages/audit/lease_counts.hpp"
#include "ipc/control/messages/cell/cell_part.hpp"
#include "ipc/control/messages/codec.hpp"
#include "ipc/control/messages/limits.hpp"
#include "ipc/control/messages/tenant_policy.hpp"
#include "ipc/control/messages/tenant_served.hpp"
#include "ipc/control/messages/waits/lease_wait.hpp"

namespace leasehold::wire {

constexpr std::string_view kDrainStates[] = {"serving",  "draining",       "drained", "replacing",
                                             "replaced", "out_of_service", "asleep",  "waking"};
constexpr std::string_view kWorkerStates[] = {"attached", "ready", "lost", "gone"};
constexpr std::string_view kDeviceStates[] = {"ready", "lost"};
constexpr std::string_view kIsolations[] = {"separate-users", "same-user", "no-worker"};
constexpr std::string_view kClocks[] = {"t_refuse", "t_error", "t_quiet", "t_reuse"};
constexpr std::int64_t kUnknown_ns = -1;
constexpr Between<std::int64_t> kLatency_ns{kUnknown_ns, std::numeric_limits<std::int64_t>::max()};

void describe(Is<RevokeClocks> auto& m, auto& fields) {
  fields.with_default("refuse_ns", m.refuse_ns, kUnknown_ns, kLatency_ns);
  fields.with_default("error_ns", m.error_ns, kUnknown_ns, kLatency_ns);
  fields.with_default("quiet_ns", m.quiet_ns, kUnknown_ns, kLatency_ns);
  fields.with_default("reuse_ns", m.reuse_ns, kUnknown_ns, kLatency_ns);
}

void describe(Is<LeaseTimes> auto& m, auto& fields) {
  fields.field("granted_boottime_ns", m.granted_boottime_ns, kBoottime_ns);
  fields.field("revoked_boottime_ns", m.revoked_boottime_ns, kBoottime_ns);
  fields.field("fenced_boottime_ns", m.fenced_boottime_ns, kBoottime_ns);
  fields.field("rebound_boottime_ns", m.rebound_boottime_ns, kBoottime_ns);
  fields.field("worker_stopped_boottime_ns", m.worker_stopped_boottime_ns, kBoottime_ns);
}

void describe(Is<LeaseView> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("scope", m.scope, EnumCount{kLeaseScopeCount});
  fields.field("tenant", m.tenant, TextRule::NameOrEmpty);
  fields.field("model", m.model);
  fields.field("part", m.part);
  fields.field("worker", m.worker, TextRule::NameOrEmpty);
  fields.field("state", m.state, EnumCount{4});
  fields.field("reason", m.reason, EnumCount{kRevokeReasonCount});
  fields.field("proof", m.proof);
  fields.field("extents", m.extents);
  fields.field("blocks", m.blocks);
  fields.field("size_bytes", m.size_bytes);
  fields.field("swap_bytes", m.swap_bytes);
  fields.field("quarantined_extents", m.quarantined_extents);
  fields.field("deadline_boottime_ns", m.deadline_boottime_ns);
  fields.field("drain_deadline_boottime_ns", m.drain_deadline_boottime_ns, kBoottime_ns);
  fields.field("replaced_by", m.replaced_by);
  fields.field("clocks", m.clocks);
  fields.field("times", m.times);
}

void describe(Is<LeaseWait> auto& m, auto& fields) {
  constexpr Between<std::int64_t> kTimeout_ms{0, 10'000};
  fields.field("leases", m.leases, MaxItems{LeaseWait::kMaxLeases});
  fields.field("worker", m.worker, TextRule::Name);
  fields.with_default("until_free", m.until_free, false);
  fields.field("timeout_ms", m.timeout_ms, kTimeout_ms);
}

void describe(Is<LeasesWaited> auto& m, auto& fields) {
  fields.field("items", m.items);
  fields.field("open", m.open);
  fields.field("oldest_open", m.oldest_open);
}

void describe(Is<HostMemoryInUse> auto& m, auto& fields) {
  fields.with_default("touched_bytes", m.touched_bytes, std::uint64_t{0});
}

void describe(Is<ExtentView> auto& m, auto& fields) {
  fields.field("extent", m.extent);
  fields.field("pool", m.pool, EnumCount{kMemoryPoolCount});
  fields.field("state", m.state, TextRule::NonEmpty);
  fields.field("lease", m.lease);
  fields.field("size_bytes", m.size_bytes);
  fields.field("inode", m.inode);
}

void describe(Is<QuarantineView> auto& m, auto& fields) {
  fields.field("extent", m.extent);
  fields.field("region", m.region);
  fields.field("lease", m.lease);
  fields.field("worker", m.worker, TextRule::NameOrEmpty);
  fields.field("since_boottime_ns", m.since_boottime_ns, kBoottime_ns);
  fields.field("size_bytes", m.size_bytes);
  fields.field("why", m.why, TextRule::NonEmpty);
}

static Result<void> validate(const QuarantineView& m) {
  return exactly_one("'extent' and 'region'", {m.extent.has_value(), m.region.has_value()});
}

void describe(Is<WorkerView> auto& m, auto& fields) {
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("id", m.id);
  fields.field("pid", m.pid);
  fields.field("state", m.state, Choice{kWorkerStates});
  fields.field("drain", m.drain, Choice{kDrainStates});
  fields.field("out_of_service", m.out_of_service, TextRule::Sentence);
  fields.field("model", m.model);
  fields.with_default("aliases", m.aliases, std::vector<std::string>{});
  fields.with_default("arithmetic", m.arithmetic, {}, Choice{kArithmetics});
  fields.field("text_identity", m.text_identity);
  fields.with_default("max_context", m.max_context, 0u);
  fields.field("address", m.address);
  fields.field("leases", m.leases);
  fields.field("revocations", m.revocations);
  fields.field("replaced_by", m.replaced_by, TextRule::Name);
  fields.with_default("leases_moved", m.leases_moved, 0u);
  fields.with_default("leases_ended", m.leases_ended, 0u);
}

void describe(Is<LatencySummary> auto& m, auto& fields) {
  fields.field("count", m.count);
  fields.field("p50_ns", m.p50_ns, kBoottime_ns);
  fields.field("p99_ns", m.p99_ns, kBoottime_ns);
  fields.field("max_ns", m.max_ns, kBoottime_ns);
}

void describe(Is<RebindSummary> auto& m, auto& fields) {
  fields.field("since_start", m.since_start);
  fields.field("last_minute", m.last_minute);
}

void describe(Is<TenantView> auto& m, auto& fields) {
  fields.object("policy", m.policy, kTenantPolicy);
  fields.field("leases_live", m.leases_live);
  fields.field("blocks_held", m.blocks_held);
  fields.field("swap_blocks_held", m.swap_blocks_held);
  fields.field("draining", m.draining);
  fields.field("served", m.served);
  fields.field("rebinds", m.rebinds);
  fields.with_default("tokens_today", m.tokens_today, std::uint64_t{0});
  fields.field("part", m.part);
  fields.field("leases", m.leases);
  fields.with_default("adapter_leases", m.adapter_leases, 0u);
  fields.with_default("adapter_bytes", m.adapter_bytes, std::uint64_t{0});
}

void describe(Is<OperatorActionView> auto& m, auto& fields) {
  fields.field("at_unix_s", m.at_unix_s, kUnixTime_s);
  fields.field("uid", m.uid);
  fields.field("action", m.action, TextRule::NonEmpty);
  fields.field("object", m.object, TextRule::NonEmpty);
  fields.field("reason", m.reason, TextRule::SentenceOrEmpty);
  fields.field("done", m.done);
}

void describe(Is<ClockSummary> auto& m, auto& fields) {
  fields.field("clock", m.clock, Choice{kClocks});
  fields.field("since_start", m.since_start);
  fields.field("last_minute", m.last_minute);
}

void describe(Is<ModeSummary> auto& m, auto& fields) {
  fields.field("mode", m.mode, TextRule::Name);
  fields.field("rebinds", m.rebinds);
}

/// The memory of one pool by the state of its extents.
constexpr auto kPoolBytes = [](auto& m, auto& fields) {
  fields.field("capacity_bytes", m.capacity_bytes);
  fields.field("free_bytes", m.free_bytes);
  fields.field("owned_bytes", m.owned_bytes);
  fields.field("draining_bytes", m.draining_bytes);
  fields.field("scrubbing_bytes", m.scrubbing_bytes);
  fields.field("retained_bytes", m.retained_bytes);
  fields.field("quarantined_bytes", m.quarantined_bytes);
  fields.field("unproven_bytes", m.unproven_bytes);
};

void describe(Is<SwapView> auto& m, auto& fields) {
  kPoolBytes(m, fields);
}

void describe(Is<CellView> auto& m, auto& fields) {
  fields.field("cell", m.cell);
  fields.field("has_agent", m.has_agent);
  fields.field("incarnation", m.incarnation);
  fields.field("ceiling_boottime_ns", m.ceiling_boottime_ns, kBoottime_ns);
  fields.field("ceiling_age_ms", m.ceiling_age_ms);
  fields.field("ceiling_left_ms", m.ceiling_left_ms);
  fields.field("tenants", m.tenants);
  fields.with_default("free_blocks", m.free_blocks, 0u);
}

void describe(Is<StatusView> auto& m, auto& fields) {
  kPoolBytes(m, fields);
  fields.field("held_bytes", m.held_bytes);
  fields.field("swap", m.swap);
  fields.field("spill_capacity_bytes", m.spill_capacity_bytes);
  fields.field("spill_lent_bytes", m.spill_lent_bytes);
  fields.field("leases_live", m.leases_live);
  fields.field("leases_revoked", m.leases_revoked);
  fields.field("leases_stuck", m.leases_stuck);
  fields.field("oldest_revoked_ms", m.oldest_revoked_ms);
  fields.field("leases_fenced", m.leases_fenced);
  fields.field("workers", m.workers);
  fields.field("workers_lost", m.workers_lost);
  fields.with_default("workers_out_of_service", m.workers_out_of_service, 0u);
  fields.with_default("workers_asleep", m.workers_asleep, 0u);
  fields.field("tenants", m.tenants);
  fields.field("tenants_live", m.tenants_live);
  fields.field("isolation", m.isolation, Choice{kIsolations});
  fields.field("tampered", m.tampered);
  fields.with_default("journal_faults", m.journal_faults, std::uint64_t{0});
  fields.with_default("log_lines_dropped", m.log_lines_dropped, std::uint64_t{0});
  fields.field("uptime_ms", m.uptime_ms);
  fields.field("clocks", m.clocks, MaxItems{std::size(kClocks)});
  fields.field("device", m.device, TextRule::NonEmpty);
  fields.field("device_uuid", m.device_uuid);
  fields.field("device_state", m.device_state, Choice{kDeviceStates});
  fields.field("device_losses", m.device_losses);
  fields.field("rebinds", m.rebinds, MaxItems{kRebindModeCount});
  fields.field("cell", m.cell);
  fields.with_default("adapters_loaded", m.adapters_loaded, 0u);
  fields.with_default("adapters_loading", m.adapters_loading, 0u);
  fields.with_default("adapters_ending", m.adapters_ending, 0u);
  fields.with_default("adapter_bytes", m.adapter_bytes, std::uint64_t{0});
}

template struct Message<RevokeClocks>;
template struct Message<LeaseTimes>;
template struct Message<LeaseView>;
template struct Message<LeaseWait>;
template struct Message<LeasesWaited>;
template struct Message<HostMemoryInUse>;
template struct Message<ExtentView>;
template struct Message<QuarantineView>;
template struct Message<WorkerView>;
template struct Message<TenantView>;
template struct Message<OperatorActionView>;
template struct Message<LatencySummary>;
template struct Message<ClockSummary>;
template struct Message<StatusView>;

}  // namespace leasehold::wire
