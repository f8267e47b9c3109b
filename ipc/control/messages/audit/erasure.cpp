// Audit records about the memory of leases.
#include "ipc/control/messages/audit/erasure.hpp"

#include "ipc/control/messages/codec.hpp"
#include "ipc/control/messages/limits.hpp"

namespace leasehold::wire {
namespace {

constexpr Between<std::uint32_t> kSomeExtents{1, std::numeric_limits<std::uint32_t>::max()};

}  // namespace

std::string_view name(MemoryFate fate) {
  constexpr std::string_view kNames[kMemoryFateCount] = {"open",
                                                         "held",
                                                         "quarantined",
                                                         "verified_zero",
                                                         "released_by_driver",
                                                         "freed_unchecked",
                                                         "cleared_for_reuse",
                                                         "never_lent",
                                                         "adopted_by"};
  return kNames[static_cast<unsigned>(fate)];
}

std::string_view name(ErasureState state) {
  constexpr std::string_view kNames[kErasureStateCount] = {"open", "quarantined", "held", "erased"};
  return kNames[static_cast<unsigned>(state)];
}

void describe(Is<MemoryGranted> auto& m, auto& fields) {
  fields.field("pool", m.pool, EnumCount{kMemoryPoolCount});
  fields.field("adopted_from", m.adopted_from);
  fields.field("extents", m.extents, kSomeExtents);
  fields.field("bytes", m.bytes, kPositiveBytes);
}

void describe(Is<MemorySettled> auto& m, auto& fields) {
  fields.field("pool", m.pool, EnumCount{kMemoryPoolCount});
  fields.field("from", m.from, EnumCount{kMemoryFateCount});
  fields.field("to", m.to, EnumCount{kMemoryFateCount});
  fields.field("adopted_by", m.adopted_by);
  fields.field("extents", m.extents, kSomeExtents);
  fields.field("bytes", m.bytes, kPositiveBytes);
}

Result<void> validate(const MemorySettled& m) {
  if (is_final(m.from) || m.from == m.to || m.to == MemoryFate::Open) {
    return fail(Errc::BadRequest,
                fmt::format("memory does not move from {} to {}", name(m.from), name(m.to)));
  }
  if ((m.to == MemoryFate::Adopted) == m.adopted_by.has_value()) return {};
  return fail(Errc::BadRequest, "'adopted_by' is set if and only if memory was adopted");
}

void describe(Is<LeaseGrantedRecord> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("scope", m.scope, EnumCount{kLeaseScopeCount});
  fields.field("tenant", m.tenant, TextRule::NameOrEmpty);
  fields.field("worker", m.worker, TextRule::NameOrEmpty);
  fields.field("attachment", m.attachment);
  fields.with_default("adapter_digest", m.adapter_digest, std::string());
  fields.with_default("opens", m.opens, false);
  fields.field("granted", m.granted);
  fields.field("granted_unix_ms", m.granted_unix_ms, kUnixTime_ms);
}

void describe(Is<LeaseErasedRecord> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("tenant", m.tenant, TextRule::NameOrEmpty);
  fields.with_default("worker", m.worker, std::string());
  fields.field("scope", m.scope, EnumCount{kLeaseScopeCount});
  fields.with_default("adapter_digest", m.adapter_digest, std::string());
  fields.with_default("reason", m.reason, std::string(), TextRule::RevokeReasonOrEmpty);
  fields.with_default("revoked_unix_ms", m.revoked_unix_ms, std::int64_t{0}, kUnixTime_ms);
  fields.with_default("fenced_unix_ms", m.fenced_unix_ms, std::int64_t{0}, kUnixTime_ms);
  fields.with_default("proof", m.proof, std::string());
  fields.with_default("spill_key_destroyed", m.spill_key_destroyed, false);
  fields.field("settled", m.settled);
  fields.field("open_extents", m.open_extents);
  fields.field("state", m.state, EnumCount{kErasureStateCount});
}

/// Messages inside others are not validated by themselves.
Result<void> validate(const LeaseErasedRecord& m) {
  for (const MemorySettled& each : m.settled) TRY(validate(each));
  return {};
}

void describe(Is<TenantPlace> auto& m, auto& fields) {
  fields.field("tenant_record", m.tenant_record);
  fields.field("tenant_previous", m.tenant_previous, TextRule::HexKey);
  fields.field("tenant_previous_unix_ms", m.tenant_previous_unix_ms, kUnixTime_ms);
}

void describe(Is<AuditGapRecord> auto& m, auto& fields) {
  fields.field("since_unix_ms", m.since_unix_ms, kUnixTime_ms);
  fields.field("until_unix_ms", m.until_unix_ms, kUnixTime_ms);
  fields.field("grants", m.grants);
  fields.field("erasures", m.erasures);
  fields.field("leases", m.leases, MaxItems{AuditGapRecord::kMaxLeases});
}

template struct Message<MemoryGranted>;
template struct Message<MemorySettled>;
template struct Message<LeaseGrantedRecord>;
template struct Message<LeaseErasedRecord>;
template struct Message<TenantPlace>;
template struct Message<AuditGapRecord>;

}  // namespace leasehold::wire
