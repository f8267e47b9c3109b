/// Writes decisions to disk, so that the broker can restore its state after a restart.
///
/// The performer of effects calls the journal; deciders only produce the rows (effect::Journal).
/// Threads: one.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "broker/books/rows.hpp"
#include "common/result.hpp"
#include "ipc/control/messages.hpp"
#include "ipc/control/messages/audit/audit_state.hpp"

namespace leasehold::journal {

using OnSignedHead = std::move_only_function<void(Result<wire::DsseEnvelope>)>;

class Journal {
 public:
  virtual ~Journal() = default;

  /// Writes the batch. After an error the rows wait in memory and are written with the next batch.
  /// The caller may continue if that is safe (a fence) and must otherwise undo its change (a
  /// grant). Errors: DiskFull, SystemError. While the reserve lasts, batches that revoke or fence
  /// leases do not fail with DiskFull.
  virtual Result<void> write(const Batch& batch) = 0;

  /// Writes the rows of many decisions as one transaction. False: nothing was written, and no row
  /// waits; write each decision's own batch.
  virtual bool write_together(const Batch& batch) = 0;

  /// Operator actions, newest first. Errors: BadRequest without a state directory; those of
  /// Database.
  virtual Result<std::vector<wire::OperatorActionView>> newest_operator_actions(
      std::size_t at_most) = 0;

  /// Records of the audit chain. Errors: as newest_operator_actions.
  virtual Result<wire::AuditPage> audit_page(const wire::AuditList& request) = 0;

  /// The tenant's leases in the audit chain; nothing if there are none.
  virtual std::optional<wire::LeaseCounts> lease_counts(const TenantId& tenant) const = 0;
  /// Nothing without a state directory.
  virtual std::optional<wire::AuditState> audit_state() const = 0;

  /// Calls `on_signed` with the signed head of the chain, after all records that it counts survive
  /// a power cut: on the caller's thread or on another, and not if the journal ends first.
  /// Errors: as newest_operator_actions; UnknownTenant; DiskFull if there was never space for a
  /// key.
  virtual void audit_head(const wire::AuditHeadQuery& query, OnSignedHead on_signed) = 0;
  /// The keys of the chain. Errors: as audit_head.
  virtual Result<wire::AuditKeys> audit_keys() = 0;
  /// See wire::AuditKeyRotate. Errors: as audit_head; those of write_state_file.
  virtual Result<wire::AuditKeys> rotate_audit_key(const wire::AuditKeyRotate& rotate) = 0;
};

/// The journal of a broker without a state directory. It keeps nothing.
class NullJournal final : public Journal {
 public:
  Result<void> write(const Batch&) override { return {}; }
  bool write_together(const Batch&) override { return true; }
  Result<std::vector<wire::OperatorActionView>> newest_operator_actions(std::size_t) override {
    return fail(Errc::BadRequest,
                "this broker runs without --state-dir and keeps no operator actions; see "
                "operator_action in `brokerctl events`");
  }
  Result<wire::AuditPage> audit_page(const wire::AuditList&) override { return no_records(); }
  std::optional<wire::LeaseCounts> lease_counts(const TenantId&) const override { return {}; }
  std::optional<wire::AuditState> audit_state() const override { return {}; }
  void audit_head(const wire::AuditHeadQuery&, OnSignedHead on_signed) override {
    on_signed(no_records());
  }
  Result<wire::AuditKeys> audit_keys() override { return no_records(); }
  Result<wire::AuditKeys> rotate_audit_key(const wire::AuditKeyRotate&) override {
    return no_records();
  }

 private:
  static std::unexpected<Error> no_records() {
    return fail(Errc::BadRequest,
                "this broker runs without --state-dir and keeps no audit records; start it with "
                "--state-dir");
  }
};

}  // namespace leasehold::journal
