/// What workers report about finished requests, and the audit records that the broker makes from
/// the reports. The rules for all messages are in ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control/messages/audit/erasure.hpp"
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
  /// The Merkle tree of the removed records (MerkleFrontier::text). The leaf of a kept record is
  /// its position in the chain after these. Empty: none was removed. May be missing.
  std::string removed_tree;
};

/// A DSSE envelope, with the field names of that format.
/// Source: https://github.com/secure-systems-lab/dsse/blob/master/envelope.md
struct DsseSignature : Message<DsseSignature> {
  std::string key_id;  ///< "keyid": see AuditKey::id.
  std::string sig;     ///< Base64.
};
struct DsseEnvelope : Message<DsseEnvelope> {
  std::string payload;  ///< Base64 of an in-toto statement.
  std::string payload_type;
  std::vector<DsseSignature> signatures;
};

/// `audit.head`: the signed head of the chain, for a reader who keeps it. Reply: DsseEnvelope of an
/// AuditHead. Errors: BadRequest for a broker without a state directory; UnknownTenant for a tenant
/// without records; DiskFull while there is no key.
struct AuditHeadQuery : Message<AuditHeadQuery> {
  static constexpr std::string_view kMethod = "audit.head";
  std::optional<std::string> tenant;  ///< As TenantHead::tenant.
};

/// The number of a tenant's leases by ErasureState. `granted` is the sum of the others. Leases of
/// published texts and adapters count, those of weights do not.
struct LeaseCounts : Message<LeaseCounts> {
  std::uint64_t granted = 0;
  std::uint64_t open = 0;
  std::uint64_t quarantined = 0;
  std::uint64_t held = 0;
  std::uint64_t erased = 0;
};
/// The number of leases in this state.
std::uint64_t& count_of(LeaseCounts& leases, ErasureState state);

/// The newest record of a tenant, and what became of its leases since the first.
struct TenantHead : Message<TenantHead> {
  std::string tenant;         ///< Empty: memory shared by all tenants.
  std::uint64_t records = 0;  ///< TenantPlace::tenant_record of the newest.
  std::string hash;
  std::int64_t unix_ms = 0;  ///< The latest `at_unix_ms` of its records.
  LeaseCounts leases;
};

/// The predicate `urn:leasehold:audit-head:1` of a signed head.
struct AuditHead : Message<AuditHead> {
  std::string log;         ///< Id of the chain: the key id of its first key.
  std::uint64_t size = 0;  ///< Of the Merkle tree: all records ever appended.
  std::string root;
  std::uint64_t sequence = 0;  ///< Of the newest record; 0: none.
  std::string hash;
  std::uint64_t removed_size = 0;  ///< How many leaves of the tree are removed records.
  std::uint64_t removed_sequence = 0;
  std::int64_t first_kept_unix_ms = 0;  ///< `at_unix_ms` of the first kept record; 0: none.
  std::int64_t signed_unix_ms = 0;
  std::uint64_t gaps = 0;     ///< AuditGapRecords ever appended.
  std::uint64_t waiting = 0;  ///< Records about leases that wait for disk space now.
  std::optional<TenantHead> tenant;
};

/// The predicate `urn:leasehold:audit-key:1` of a statement that introduces a key of the chain.
struct AuditKey : Message<AuditKey> {
  std::string id;   ///< The SHA-256 of the 32 bytes of the public key.
  std::string key;  ///< "ed25519:" and the public key in base64.
  /// Id of the key before, which signs the statement. Empty for the first key, and for one that was
  /// made because the key before was lost: these sign themselves.
  std::string previous;
  std::int64_t created_unix_ms = 0;
};

/// `audit.key`: the keys that the chain has had. Reply: AuditKeys. Errors: those of `audit.head`.
struct AuditKeyQuery : Message<AuditKeyQuery> {
  static constexpr std::string_view kMethod = "audit.key";
};
struct AuditKeys : Message<AuditKeys> {
  /// Of AuditKey statements, the oldest first; the last key signs.
  std::vector<DsseEnvelope> keys;
};

/// `audit.rotate_key`: replaces the key, which signs the new one. If `key` is not the id of the
/// newest, it was replaced before, and nothing changes. Reply: AuditKeys. Errors: those of
/// `audit.head`.
struct AuditKeyRotate : Message<AuditKeyRotate> {
  static constexpr std::string_view kMethod = "audit.rotate_key";
  std::string key;
};

}  // namespace leasehold::wire
