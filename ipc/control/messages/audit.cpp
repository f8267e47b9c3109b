// Records of usage, and the audit chain.
#include "ipc/control/messages/audit.hpp"

#include <utility>

#include "ipc/control/messages/audit/lease_counts.hpp"
#include "ipc/control/messages/codec.hpp"
#include "ipc/control/messages/limits.hpp"

namespace leasehold::wire {
namespace {

constexpr std::size_t kMaxSignatures = 8;

}  // namespace

std::uint64_t& count_of(LeaseCounts& leases, ErasureState state) {
  switch (state) {
    case ErasureState::Open:
      return leases.open;
    case ErasureState::Quarantined:
      return leases.quarantined;
    case ErasureState::Held:
      return leases.held;
    case ErasureState::Erased:
      return leases.erased;
  }
  std::unreachable();
}

void describe(Is<UsageRecord> auto& m, auto& fields) {
  fields.field("number", m.number, Between<std::uint64_t>{1, std::uint64_t{1} << 62});
  fields.field("tenant", m.tenant);
  fields.field("request", m.request);
  fields.field("lease", m.lease);
  fields.field("prompt_tokens", m.prompt_tokens);
  fields.field("cached_tokens", m.cached_tokens);
  fields.field("generated_tokens", m.generated_tokens);
  fields.field("reason", m.reason, TextRule::Sentence);
  fields.field("submitted_boottime_ns", m.submitted_boottime_ns, kBoottime_ns);
  fields.field("first_token_boottime_ns", m.first_token_boottime_ns, kBoottime_ns);
  fields.field("ended_boottime_ns", m.ended_boottime_ns, kBoottime_ns);
}

void describe(Is<UsageReport> auto& m, auto& fields) {
  fields.field("records", m.records, MaxItems{UsageReport::kMaxRecords});
}

void describe(Is<AuditList> auto& m, auto& fields) {
  fields.with_default("after", m.after, std::uint64_t{0});
  fields.with_default("limit", m.limit, std::uint32_t{1000}, kPageItems);
}

void describe(Is<AuditRecordView> auto& m, auto& fields) {
  fields.field("sequence", m.sequence);
  fields.field("content", m.content);
  fields.field("hash", m.hash);
}

void describe(Is<AuditPage> auto& m, auto& fields) {
  fields.field("records", m.records);
  fields.field("removed_sequence", m.removed_sequence);
  fields.field("removed_hash", m.removed_hash, TextRule::HexKey);
  fields.field("head_sequence", m.head_sequence);
  fields.field("head_hash", m.head_hash, TextRule::HexKey);
  fields.with_default("head_missing_after", m.head_missing_after, std::uint64_t{0});
  fields.with_default("clock_ahead_ms", m.clock_ahead_ms, std::int64_t{0});
  fields.with_default("removed_tree", m.removed_tree, std::string());
}

void describe(Is<DsseSignature> auto& m, auto& fields) {
  fields.field("keyid", m.key_id, TextRule::HexKey);
  fields.field("sig", m.sig, TextRule::Sentence);
}

void describe(Is<DsseEnvelope> auto& m, auto& fields) {
  fields.field("payload", m.payload);
  fields.field("payloadType", m.payload_type, TextRule::Sentence);
  fields.field("signatures", m.signatures, MaxItems{kMaxSignatures});
}

void describe(Is<AuditHeadQuery> auto& m, auto& fields) {
  fields.field("tenant", m.tenant, TextRule::NameOrEmpty);
}

void describe(Is<TenantHead> auto& m, auto& fields) {
  fields.field("tenant", m.tenant, TextRule::NameOrEmpty);
  fields.field("records", m.records);
  fields.field("hash", m.hash, TextRule::HexKey);
  fields.field("unix_ms", m.unix_ms, kUnixTime_ms);
  fields.field("leases", m.leases);
}

void describe(Is<AuditHead> auto& m, auto& fields) {
  fields.field("log", m.log, TextRule::HexKey);
  fields.field("size", m.size);
  fields.field("root", m.root, TextRule::HexKey);
  fields.field("sequence", m.sequence);
  fields.field("hash", m.hash, TextRule::HexKey);
  fields.field("removed_size", m.removed_size);
  fields.field("removed_sequence", m.removed_sequence);
  fields.field("first_kept_unix_ms", m.first_kept_unix_ms, kUnixTime_ms);
  fields.field("signed_unix_ms", m.signed_unix_ms, kUnixTime_ms);
  fields.field("gaps", m.gaps);
  fields.field("waiting", m.waiting);
  fields.field("tenant", m.tenant);
}

void describe(Is<AuditKey> auto& m, auto& fields) {
  fields.field("id", m.id, TextRule::HexKey);
  fields.field("key", m.key, TextRule::Sentence);
  fields.field("previous", m.previous);
  fields.field("created_unix_ms", m.created_unix_ms, kUnixTime_ms);
}

void describe(Is<AuditKeyQuery> auto&, auto&) {}

void describe(Is<AuditKeys> auto& m, auto& fields) {
  fields.field("keys", m.keys);
}

void describe(Is<AuditKeyRotate> auto& m, auto& fields) {
  fields.field("key", m.key, TextRule::HexKey);
}

template struct Message<UsageRecord>;
template struct Message<UsageReport>;
template struct Message<AuditList>;
template struct Message<AuditRecordView>;
template struct Message<AuditPage>;
template struct Message<DsseSignature>;
template struct Message<DsseEnvelope>;
template struct Message<AuditHeadQuery>;
template struct Message<LeaseCounts>;
template struct Message<TenantHead>;
template struct Message<AuditHead>;
template struct Message<AuditKey>;
template struct Message<AuditKeyQuery>;
template struct Message<AuditKeys>;
template struct Message<AuditKeyRotate>;

}  // namespace leasehold::wire
