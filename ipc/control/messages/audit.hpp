/// What workers report about finished requests, and the audit records that the broker makes from
/// the reports. The rules for all messages are in ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control/messages/common.hpp"

namespace leasehold::wire {

/// What one finished request used. A request that ends and is submitted again under another lease
/// has a record for each submission. Each record counts the prompt; a generated token counts in one
/// record only.
struct UsageRecord : Message<UsageRecord> {
  std::uint64_t number = 0;  ///< Counted by the worker process from 1. A gap means dropped records.
  TenantId tenant;
  RequestId request;  ///< The client's request id.
  LeaseId lease;      ///< The lease under which the request ended.
  std::uint32_t prompt_tokens = 0;
  /// Prompt tokens that were not computed, because their KV was cached.
  std::uint32_t cached_tokens = 0;
  std::uint32_t generated_tokens = 0;  ///< Generated since this submission.
  std::string reason;                  ///< A reason of RequestCompleted, or the name of an Errc.
  std::int64_t submitted_boottime_ns = 0;
  std::int64_t first_token_boottime_ns = 0;  ///< 0: none was generated.
  std::int64_t ended_boottime_ns = 0;
};

/// `usage_record.report`: records of finished requests, by ascending number. A worker repeats the
/// call until it succeeds; the broker ignores records that it already has. Reply: Empty, once the
/// records are in the journal. Errors: those of the journal; PermissionDenied for a lease of
/// another worker or tenant.
struct UsageReport : Message<UsageReport> {
  static constexpr std::string_view kMethod = "usage_record.report";
  static constexpr std::size_t kMaxRecords = 256;
  std::vector<UsageRecord> records;
};

/// `audit.list`: audit records in the order of their sequence numbers. Reply: AuditPage.
/// Errors: BadRequest for a broker without a state directory.
struct AuditList : Message<AuditList> {
  static constexpr std::string_view kMethod = "audit.list";
  std::uint64_t after = 0;  ///< A sequence number.
  std::uint32_t limit = 1000;
};

/// See ipc/control/tokens/audit_chain.hpp.
struct AuditRecordView : Message<AuditRecordView> {
  std::uint64_t sequence = 0;
  std::string content;  ///< One JSON object.
  std::string hash;
};

struct AuditPage : Message<AuditPage> {
  /// Limit for the contents before the last record.
  static constexpr std::size_t kMaxBytes = 1 << 18;
  std::vector<AuditRecordView> records;  ///< Empty means that no record follows.
  std::uint64_t removed_sequence = 0;    ///< The last record that retention removed; 0: none.
  std::string removed_hash;
  std::uint64_t head_sequence = 0;  ///< The newest record, from a source other than the table.
  std::string head_hash;
  /// The newest record when a broker last found that the file with the chain's head was missing:
  /// records after this one may have been cut off. 0: no such record. May be missing.
  std::uint64_t head_missing_after = 0;
  /// How far the machine's clock is ahead of the time that the broker trusts. Retention uses the
  /// trusted time. 0: not ahead. May be missing.
  std::int64_t clock_ahead_ms = 0;
};

}  // namespace leasehold::wire
