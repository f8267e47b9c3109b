// Operator → broker: admit, revoke, drain, quarantine, and the parameters of lists.
#include "ipc/control/messages/operator.hpp"

#include "ipc/control/messages/codec.hpp"
#include "ipc/control/messages/limits.hpp"
#include "ipc/control/messages/tenant_policy.hpp"

namespace leasehold::wire {

std::string_view name(LeaseScope scope) {
  constexpr std::string_view kNames[kLeaseScopeCount] = {"engine", "tenant", "shared", "adapter"};
  return kNames[static_cast<unsigned>(scope)];
}

std::string_view name(RebindMode mode) {
  constexpr std::string_view kNames[kRebindModeCount] = {"reprefill", "checkpoint", "preemptive",
                                                         "failover", "adopt"};
  return kNames[static_cast<unsigned>(mode)];
}

std::string_view name(Tier tier) {
  constexpr std::string_view kNames[] = {"guaranteed", "standard", "scavenger"};
  return kNames[static_cast<unsigned>(tier)];
}

void describe(Is<Empty> auto&, auto&) {}

void describe(Is<TenantAdmit> auto& m, auto& fields) {
  kTenantPolicy(m, fields);
  fields.field("request_id", m.request_id);
}

void describe(Is<TenantPolicy> auto& m, auto& fields) {
  kTenantPolicy(m, fields);
}

void describe(Is<TenantRemove> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("revoke", m.revoke);
  fields.field("request_id", m.request_id);
}

static void describe_target(auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("tenant", m.tenant);
  fields.field("request_id", m.request_id);
}

void describe(Is<LeaseRevoke> auto& m, auto& fields) {
  describe_target(m, fields);
  fields.field("part", m.part, TextRule::Sentence);
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("adapter", m.adapter);
}

void describe(Is<PrefixPublish> auto& m, auto& fields) {
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("text", m.text, TextRule::NonEmpty);
  fields.field("name", m.name, TextRule::NameOrEmpty);
  fields.field("adapter", m.adapter);
  fields.field("request_id", m.request_id);
}

Result<void> validate(const PrefixPublish& publish) {
  if (publish.text.size() <= PrefixPublish::kMaxTextBytes) return {};
  return fail(Errc::BadRequest, fmt::format("text has {} bytes; publish at most {}",
                                            publish.text.size(), PrefixPublish::kMaxTextBytes));
}

void describe(Is<PrefixPublished> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("tokens", m.tokens);
  fields.field("blocks", m.blocks);
}

void describe(Is<LeaseDrain> auto& m, auto& fields) {
  describe_target(m, fields);
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("grace_ms", m.grace_ms, kUpToOneDay_ms);
}

void describe(Is<LeaseUndrain> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("request_id", m.request_id);
}

void describe(Is<WorkerReplace> auto& m, auto& fields) {
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("by", m.by, TextRule::Name);
  fields.field("grace_ms", m.grace_ms, kUpToOneDay_ms);
  fields.with_default("any_arithmetic", m.any_arithmetic, false);
  fields.field("request_id", m.request_id);
}

void describe(Is<WorkerSleep, WorkerWake> auto& m, auto& fields) {
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("request_id", m.request_id);
}

void describe(Is<ExtentOpen> auto& m, auto& fields) {
  fields.field("extent", m.extent);
}

void describe(Is<QuarantineRelease> auto& m, auto& fields) {
  fields.field("extent", m.extent);
  fields.field("region", m.region);
  fields.field("reason", m.reason, TextRule::Sentence);
  fields.field("request_id", m.request_id);
}

void describe(Is<QuarantineReleased> auto& m, auto& fields) {
  fields.field("size_bytes", m.size_bytes);
}

void describe(Is<LeasesTouched> auto& m, auto& fields) {
  fields.field("leases", m.leases);
}

static void describe_limit(auto& m, auto& fields) {
  fields.with_default("limit", m.limit, kPageItems.high, kPageItems);
}

void describe(Is<TenantList> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("after", m.after);
  describe_limit(m, fields);
}

void describe(Is<ExtentList> auto& m, auto& fields) {
  fields.field("after", m.after);
  describe_limit(m, fields);
}

void describe(Is<QuarantineList> auto& m, auto& fields) {
  fields.field("after_extent", m.after_extent);
  fields.field("after_region", m.after_region);
  describe_limit(m, fields);
}

static Result<void> validate(const LeaseRevoke& m) {
  const bool has_tenant = m.tenant.has_value() && !m.adapter;
  TRY(exactly_one("'lease', 'tenant', 'part' and 'adapter'",
                  {m.lease.has_value(), has_tenant, m.part.has_value(), m.adapter.has_value()}));
  if (!m.worker || m.part) return {};
  return fail(Errc::BadRequest, "'worker' goes with 'part': a lease is on one worker anyway");
}

static Result<void> validate(const LeaseDrain& m) {
  return exactly_one("'lease', 'tenant' and 'worker'",
                     {m.lease.has_value(), m.tenant.has_value(), m.worker.has_value()});
}

static Result<void> validate(const LeaseUndrain& m) {
  return exactly_one("'tenant' and 'worker'", {m.tenant.has_value(), m.worker.has_value()});
}

static Result<void> validate(const QuarantineRelease& m) {
  return exactly_one("'extent' and 'region'", {m.extent.has_value(), m.region.has_value()});
}

static Result<void> validate(const QuarantineList& m) {
  if (!m.after_extent || !m.after_region) return {};
  return fail(Errc::BadRequest, "expected at most one of 'after_extent' and 'after_region'");
}

template struct Message<Empty>;
template struct Message<TenantAdmit>;
template struct Message<TenantPolicy>;
template struct Message<TenantRemove>;
template struct Message<LeaseRevoke>;
template struct Message<PrefixPublish>;
template struct Message<PrefixPublished>;
template struct Message<LeaseDrain>;
template struct Message<LeaseUndrain>;
template struct Message<WorkerReplace>;
template struct Message<WorkerSleep>;
template struct Message<WorkerWake>;
template struct Message<ExtentOpen>;
template struct Message<QuarantineRelease>;
template struct Message<QuarantineReleased>;
template struct Message<TenantList>;
template struct Message<ExtentList>;
template struct Message<QuarantineList>;
template struct Message<LeasesTouched>;

}  // namespace leasehold::wire
