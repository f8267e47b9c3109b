/// What became of the memory of each lease, computed from the audit records of one tenant.
///
/// The records are input. They describe accounts (ipc/control/messages/audit/erasure.hpp); a record
/// that does not fit the account of its lease is an error. Threads: one.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "ipc/control/messages/audit.hpp"

namespace leasehold::verify {

struct Amount {
  std::uint64_t extents = 0;
  std::uint64_t bytes = 0;

  Amount& operator+=(const Amount& other);
  /// Returns false and changes nothing if there is less than `other`.
  bool subtract(const Amount& other);
  bool operator==(const Amount&) const = default;
};

using Fate = wire::MemoryFate;
/// The memory of one lease, or of several.
using Memory = std::map<std::pair<wire::MemoryPool, Fate>, Amount>;
Amount amount_of(const Memory& memory, Fate fate);

struct LeaseAccount {
  bool is_whole = false;  ///< The records begin with its first grant. Else `memory` is incomplete.
  std::string worker;
  std::int64_t granted_unix_ms = 0;  ///< 0: not known.
  std::int64_t revoked_unix_ms = 0;
  std::string reason;
  std::string proof;
  bool spill_key_destroyed = false;
  wire::ErasureState state = wire::ErasureState::Open;
  Memory memory;
};

class LeaseAccounts {
 public:
  /// Takes the tenant's records in their order. `record`: a lease_granted or lease_erased record.
  /// Errors: FileCorrupt, with what is wrong but not where.
  Result<void> add(const wire::Json& record);
  /// Call after the last record. Errors: as `add`; memory that was handed to a lease which never
  /// got it.
  Result<void> finish() const;

  const std::map<LeaseId, LeaseAccount>& leases() const { return leases_; }

 private:
  Result<void> grant(const wire::LeaseGrantedRecord& record);
  Result<void> settle(const wire::LeaseErasedRecord& record);

  std::map<LeaseId, LeaseAccount> leases_;
  /// Handed from one lease to another, less what the other lease's grants show, modulo 2^64. Whole
  /// leases only.
  std::map<std::pair<LeaseId, LeaseId>, std::uint64_t> adopted_bytes_;
};

}  // namespace leasehold::verify
