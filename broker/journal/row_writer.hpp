/// Writes rows into the database, with one prepared statement per kind of row.
#pragma once

#include "broker/books/rows.hpp"
#include "broker/journal/audit_log.hpp"
#include "broker/journal/database.hpp"

namespace leasehold::journal {

/// Lifetime: the database and the audit log outlive this object. Threads: one.
class RowWriter {
 public:
  /// Errors: those of Database, for a table with the wrong columns.
  static Result<RowWriter> create(Database& database, AuditLog& audit);

  /// Runs inside the caller's transaction.
  Result<void> write(const Row& row);

 private:
  struct Statements {
    Statement meta;
    Statement tenant;
    Statement api_key;
    Statement worker;
    Statement lease;
    Statement extent;
    Statement region;
    Statement operator_action;
    Statement tenant_gone;
    Statement api_key_gone;
    Statement worker_gone;
    Statement lease_gone;
    Statement extent_gone;
    Statement region_gone;
  };
  RowWriter(Statements statements, AuditLog& audit) : to_(std::move(statements)), audit_(&audit) {}

  Result<void> put(const TenantRow& row);
  Result<void> put(const ApiKeyRow& row);
  Result<void> put(const WorkerRow& row);
  Result<void> put(const LeaseRow& row);
  Result<void> put(const ExtentRow& row);
  Result<void> put(const RegionRow& row);
  Result<void> put(const Reserved& row);
  Result<void> put(const ShapeRow& row);
  Result<void> put(const OperatorActionRow& row);
  Result<void> put(const UsageRow& row) { return audit_->append(row); }
  Result<void> put(const RevocationRow& row) { return audit_->append(row); }
  Result<void> put(const BootRow& row);
  Result<void> put(const TenantGone& row) { return to_.tenant_gone.run(row.id.value); }
  Result<void> put(const ApiKeyGone& row) { return to_.api_key_gone.run(row.id.value); }
  Result<void> put(const WorkerGone& row);
  Result<void> put(const LeaseGone& row) {
    return to_.lease_gone.run(row.id.slot, row.id.generation);
  }
  Result<void> put(const ExtentGone& row) { return to_.extent_gone.run(row.id); }
  Result<void> put(const RegionGone& row) { return to_.region_gone.run(row.id); }

  Statements to_;
  AuditLog* audit_;
};

}  // namespace leasehold::journal
