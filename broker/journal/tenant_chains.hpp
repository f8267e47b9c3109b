/// The newest audit record of each tenant, and the states of its leases: a table of the journal.
///
/// A tenant's row is never removed, also when retention has removed its records, so that its chain
/// and its counts go on. Threads: one. Errors: those of Database.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "broker/journal/database.hpp"
#include "ipc/control/messages/audit.hpp"

namespace leasehold::journal {

class TenantChains {
 public:
  /// The database outlives this object.
  static Result<TenantChains> create(Database& database);

  /// The place of the tenant's next record. The empty tenant has the records of shared memory.
  wire::TenantPlace next_place(const std::string& tenant) const;

  struct Appended {
    std::string hash;
    std::int64_t unix_ms = 0;
    bool opens = false;  ///< The record is the first of a lease, which is Open.
    wire::ErasureState before = wire::ErasureState::Open;  ///< The state of the record's lease.
    wire::ErasureState after = wire::ErasureState::Open;
  };
  /// The next record was appended to the chain.
  void append(const std::string& tenant, const Appended& record);

  /// Writes what the transaction changed; call before COMMIT.
  Result<void> write();
  /// Call one of these after COMMIT or ROLLBACK.
  void committed();
  void rolled_back() { next_.clear(); }

  /// As on disk. Null for a tenant without records.
  const wire::TenantHead* find(const std::string& tenant) const;
  /// The leases of all tenants, as on disk.
  const wire::LeaseCounts& all_leases() const { return all_leases_; }

 private:
  explicit TenantChains(Statement put) : put_(std::move(put)) {}
  Result<void> load(Database& database);
  void store(wire::TenantHead head);
  const wire::TenantHead* find_next(const std::string& tenant) const;

  Statement put_;
  std::map<std::string, wire::TenantHead> heads_;
  wire::LeaseCounts all_leases_;
  std::map<std::string, wire::TenantHead> next_;  ///< Those that the transaction changed.
};

}  // namespace leasehold::journal
