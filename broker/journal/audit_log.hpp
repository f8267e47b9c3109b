/// Appends the records of the audit chain, a table of the journal, and removes the oldest.
///
/// Records are appended and removed in the journal's transactions. A transaction removes only a few
/// records for each one that it appends, so that no transaction is long. The Merkle tree over all
/// records is kept as its frontier: in memory for the newest record, on disk for the removed ones
/// and at every kStoredLeaves-th record, from which a start computes the newest. Lifetime: the
/// database outlives this object. Threads: one. Format: ipc/control/tokens/audit_chain.hpp,
/// ipc/control/messages/audit/erasure.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/books/rows.hpp"
#include "broker/journal/database.hpp"
#include "broker/journal/tenant_chains.hpp"
#include "broker/journal/trusted_time.hpp"
#include "ipc/control/messages/audit.hpp"
#include "ipc/control/tokens/audit_chain.hpp"
#include "ipc/control/tokens/merkle_tree.hpp"

namespace leasehold::journal {

/// How much of the chain is kept.
struct AuditLimits {
  std::uint64_t records = 1'000'000;  ///< At least 1.
  std::uint32_t days = 0;             ///< 0: no limit.
  bool trust_clock = false;           ///< Trust the machine's clock, however far it stepped.
};

class AuditLog {
 public:
  /// If the table ends before `head`, records were cut off; the chain then continues after `head`,
  /// so that the gap stays visible. If the head file was missing, the log remembers this until the
  /// records that it then had have been removed. Errors: those of Database.
  static Result<AuditLog> create(Database& database, const std::optional<audit::Link>& head,
                                 AuditLimits limits);

  /// These run inside the caller's transaction. A usage record whose number the worker has reported
  /// before is dropped. Errors: those of Database.
  Result<void> append(const UsageRow& row);
  Result<void> append(const RevocationRow& row);
  Result<void> append(const LeaseGrantedRow& row);
  Result<void> append(const LeaseErasedRow& row);
  /// The gap ends now.
  Result<void> append(wire::AuditGapRecord gap);
  Result<void> append(const AuditKeyRow& row);
  Result<void> forget(AttachmentId worker);
  /// Writes what the transaction changed, and removes records beyond the limits; call before
  /// COMMIT.
  Result<void> finish();
  /// From now on all records stay: one of those beyond the limits is damaged. False if it was
  /// called before.
  bool stop_removing() { return std::exchange(removes_, false); }
  /// Call one of these after COMMIT or ROLLBACK.
  void committed();
  void rolled_back();

  /// The newest record on disk.
  const audit::Link& head() const { return now_.head; }
  /// What a signed head says, except the id of the log and what waits.
  /// Errors: UnknownTenant for a tenant without records; those of Database.
  Result<wire::AuditHead> signed_part(const std::optional<std::string>& tenant);
  const TenantChains& tenants() const { return tenants_; }
  std::uint64_t gaps() const { return now_.gaps; }
  /// The statements about the chain's keys that the journal had at the start.
  const std::vector<wire::DsseEnvelope>& key_links() const { return key_links_; }
  /// See AuditPage. Also 0 for a clock that is behind, because that only removes fewer records.
  std::int64_t clock_ahead_ms() const {
    return limits_.days == 0 ? 0 : std::max<std::int64_t>(0, time_.ahead_ms());
  }
  std::uint64_t head_missing_after() const { return head_missing_after_; }

  /// Errors: those of Database.
  Result<wire::AuditPage> page(const wire::AuditList& request);

 private:
  struct Statements {
    Statement insert;
    Statement set_source;
    Statement forget_source;
    Statement last_aged;
    Statement up_to;
    Statement first_time;
    Statement remove;
    Statement set_meta;
    Statement forget_meta;
    Statement page;
  };
  /// The ends of the chain.
  struct Ends {
    audit::Link head;
    audit::MerkleFrontier tree;
    audit::Link removed;
    audit::MerkleFrontier removed_tree;
    std::uint64_t gaps = 0;  ///< Gap records ever appended.
  };
  /// What was appended.
  struct Appended {
    std::string hash;
    std::int64_t unix_ms = 0;
  };
  AuditLog(Statements statements, TenantChains tenants, AuditLimits limits)
      : to_(std::move(statements)), tenants_(std::move(tenants)), limits_(limits), time_({}, {}) {}
  Result<void> load(Database& database, const std::optional<audit::Link>& head);
  Result<void> load_meta(Database& database, std::optional<std::int64_t>& last_unix_ms);
  Result<void> load_tree(Database& database);
  Result<void> load_sources(Database& database);
  Result<void> note_time();
  Result<Appended> append_fields(nlohmann::json fields);
  Result<Appended> append_of(const std::string& tenant, std::string_view kind,
                             nlohmann::json fields);
  Result<void> remove_excess();
  Result<void> remove_through(std::uint64_t sequence);
  Result<void> store_tree();

  Statements to_;
  TenantChains tenants_;
  AuditLimits limits_;
  TrustedTime time_;
  bool time_is_stored_ = false;  ///< True only while the clock is not trusted.
  bool removes_ = true;
  std::uint64_t head_missing_after_ = 0;
  std::vector<wire::DsseEnvelope> key_links_;
  Ends now_;                                       ///< On disk.
  std::map<AttachmentId, std::uint64_t> numbers_;  ///< The newest usage record of each worker.
  // State of the current transaction.
  Ends next_;
  std::map<AttachmentId, std::uint64_t> next_numbers_;
  std::uint64_t appended_ = 0;
  bool changed_ = false;
};

}  // namespace leasehold::journal
