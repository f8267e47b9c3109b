/// The journal as a SQLite file in write-ahead mode: `<state_dir>/journal.db`, mode 0600.
///
/// Each batch is one transaction, with synchronous=NORMAL, which survives the end of the broker but
/// not a power cut, or FULL for durable batches. The checkpointer's thread syncs the log for
/// batches that are synced later. A reserve file holds space for the fence of every open lease, so
/// revocations and fences can be written even on a full disk. After a write that found no space, no
/// other is tried until the disk has space for all waiting rows, so a decision on a full disk costs
/// no further disk work. The checkpointer moves the log into the database each time it has grown by
/// 2 MiB, and every start moves it too; from 6 MiB on, writes that revoke nothing wait for the
/// checkpointer, at most 0.1 s each time. Lifetime: the caller holds the lock of the state
/// directory. Threads: one. Source: https://sqlite.org/wal.html,
/// https://sqlite.org/pragma.html#pragma_synchronous
#pragma once

#include <memory>
#include <unordered_set>

#include "broker/journal/audit_log.hpp"
#include "broker/journal/audit_signer.hpp"
#include "broker/journal/checkpointer.hpp"
#include "broker/journal/high_water_marks_file.hpp"
#include "broker/journal/journal.hpp"
#include "broker/journal/reserve_file.hpp"
#include "broker/journal/space_shortage.hpp"
#include "broker/journal/tables.hpp"
#include "broker/journal/waiting_rows.hpp"

namespace leasehold::journal {

class SqliteJournal final : public Journal {
 public:
  /// Opens or creates the journal, then checks all of it but the audit records.
  /// Errors: FileCorrupt, DiskFull, SystemError; those of state_file_error.
  static Result<std::unique_ptr<SqliteJournal>> open(const std::string& state_dir,
                                                     AuditLimits limits = {});

  /// Reads the journal. The marks in the image are the higher ones of the journal and the marks
  /// file; if that file is not original, they are above all ids that can have been issued before
  /// `now_unix_s`. Afterwards the reserve has space for the fences of the leases, unless the disk
  /// is full.
  Result<Image> load(std::int64_t now_unix_s);
  /// True if ids were issued but the marks file is missing or not original, as after a restore from
  /// a backup.
  bool was_restored() const { return was_restored_; }
  const AuditLog& audit() const { return *components_.audit; }
  const AuditSigner& signer() const { return components_.signer; }

  Result<void> write(const Batch& batch) override;
  bool write_together(const Batch& batch) override;
  Result<std::vector<wire::OperatorActionView>> newest_operator_actions(
      std::size_t at_most) override;
  Result<wire::AuditPage> audit_page(const wire::AuditList& request) override;
  std::optional<wire::LeaseCounts> lease_counts(const TenantId& tenant) const override;
  std::optional<wire::AuditState> audit_state() const override;
  void audit_head(const wire::AuditHeadQuery& query, OnSignedHead on_signed) override;
  Result<wire::AuditKeys> audit_keys() override;
  Result<wire::AuditKeys> rotate_audit_key(const wire::AuditKeyRotate& rotate) override;

  /// Number of rows that wait for disk space.
  std::size_t waiting() const { return waiting_.size(); }
  std::uint64_t reserve_bytes() const { return components_.reserve.size_bytes(); }
  /// How often the log was synced for batches that are synced later.
  std::uint64_t log_syncs() const { return components_.checkpointer->log_syncs(); }
  /// How often the file system was queried for space after a write that found none.
  std::uint64_t space_queries() const {
    return no_space_.queries() + no_space_for_grants_.queries();
  }

 private:
  struct Statements {
    Statement begin;
    Statement commit;
    Statement rollback;
    Statement sync_full;
    Statement sync_normal;
  };
  struct Components {
    Database database;  // first, so that it is destroyed after the statements
    std::unique_ptr<AuditLog> audit;
    AuditSigner signer;
    Tables tables;
    Statements statements;
    ReserveFile reserve;
    HighWaterMarksFile high_water_marks;
    std::unique_ptr<Checkpointer> checkpointer;
  };
  explicit SqliteJournal(Components components) : components_(std::move(components)) {}

  /// Creates the key of the audit chain, if there is none.
  Result<void> prepare_key();
  Result<void> write_key();
  Result<wire::DsseEnvelope> signed_head(const wire::AuditHeadQuery& query);
  Result<void> try_write(const Batch& batch);
  Result<void> write_new(const Batch& batch);
  Result<void> commit(const Batch& batch);
  Result<void> commit_on_reserve(const Batch& batch);
  Result<void> raise_marks(const Batch& batch);
  bool may_use_reserve(const Batch& batch) const;
  std::uint64_t log_bytes(const Batch& batch) const;
  Result<void> write_rows(const Batch& batch);
  /// Stops the removal of audit records, if that may allow the write that failed.
  bool keeps_damaged(const Error& why);
  void publish_audit_head();
  void checkpoint_if_due();
  void wait_for_short_log(const Batch& batch);
  void count_leases(const Batch& batch);
  std::uint64_t reserve_wanted() const;

  Components components_;
  WaitingRows waiting_;
  std::unordered_set<LeaseId> not_fenced_;
  SpaceShortage no_space_;
  SpaceShortage no_space_for_grants_;  ///< Grants also need space for the reserve.
  bool was_restored_ = false;
  HighWaterMarks marks_;  ///< Marks of the newest row; the marks file may have older ones.
  std::uint64_t checkpointed_pages_ = 0;  ///< Length of the log at the last checkpoint.
  std::uint64_t awaited_pages_ = 0;       ///< Length of the log at the last wait for one.
};

}  // namespace leasehold::journal
