// Records of usage, and the audit chain.
#include "ipc/control/messages/audit.hpp"

#include "ipc/control/messages/codec.hpp"
#include "ipc/control/messages/limits.hpp"

namespace leasehold::wire {

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
}

template struct Message<UsageRecord>;
template struct Message<UsageReport>;
template struct Message<AuditList>;
template struct Message<AuditRecordView>;
template struct Message<AuditPage>;

}  // namespace leasehold::wire
