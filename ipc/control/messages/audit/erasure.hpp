/// Audit records about the memory of leases: where it was granted, and what became of it.
///
/// These are the contents of records of the audit chain (ipc/control/tokens/audit_chain.hpp). A
/// record of a lease also has the members of TenantPlace, which make a chain of each tenant's.
/// `record` is "lease_granted", "lease_erased", "audit_gap" or "audit_key".
///
/// The memory of a lease is an account. A LeaseGrantedRecord adds to MemoryFate::Open. A
/// LeaseErasedRecord moves from one fate to another. For each lease, pool and fate, what was moved
/// away is at most what was moved there before. Memory is erased when its fate is final.
/// Leases of scope Engine are not recorded: weights do not belong to a tenant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control/messages/common.hpp"

namespace leasehold::wire {

/// What became of memory of a lease.
enum class MemoryFate : std::uint8_t {
  Open,  ///< The lease has it, or it is not verified yet.
  /// Device memory that was cleared after the fence; its worker's process may still reach it.
  Held,
  Quarantined,       ///< It was not empty after the fence, or not reported free.
  VerifiedZero,      ///< Host memory: no page was allocated after the fence and the unmapping.
  ReleasedByDriver,  ///< Device memory: the driver reported it free after its worker's exit.
  /// No process has it any more, so the kernel or the driver freed it. The broker could not check
  /// it: its descriptor was lost, or the machine restarted.
  FreedUnchecked,
  ClearedForReuse,  ///< Device memory that was held, cleared again, and lent to the same worker.
  NeverLent,        ///< It was not allocated, or no process received it.
  Adopted,          ///< It was handed to another lease of the tenant, with its content.
};
inline constexpr int kMemoryFateCount = 9;
std::string_view name(MemoryFate fate);  ///< "open", "held", "verified_zero", "adopted_by" …
/// True if no later record moves the memory.
constexpr bool is_final(MemoryFate fate) {
  return fate > MemoryFate::Quarantined;
}

/// The state of a lease for an auditor: Open until its last memory has left, then the worst fate of
/// its memory.
enum class ErasureState : std::uint8_t { Open, Quarantined, Held, Erased };
inline constexpr int kErasureStateCount = 4;
std::string_view name(ErasureState state);  ///< "open", "quarantined", "held", "erased"

/// Memory of one pool that a transaction lent under a lease.
struct MemoryGranted : Message<MemoryGranted> {
  MemoryPool pool = MemoryPool::Kv;
  std::optional<LeaseId> adopted_from;  ///< The lease whose memory it was.
  std::uint32_t extents = 0;
  std::uint64_t bytes = 0;
};

/// Memory of one pool whose fate changed.
struct MemorySettled : Message<MemorySettled> {
  MemoryPool pool = MemoryPool::Kv;
  MemoryFate from = MemoryFate::Open;
  MemoryFate to = MemoryFate::VerifiedZero;
  std::optional<LeaseId> adopted_by;  ///< Set if and only if `to` is Adopted.
  std::uint32_t extents = 0;
  std::uint64_t bytes = 0;
};

/// `lease_granted`: memory that one transaction lent under a lease. A growth is another record of
/// the same lease.
struct LeaseGrantedRecord : Message<LeaseGrantedRecord> {
  LeaseId lease;
  LeaseScope scope = LeaseScope::Tenant;
  std::string tenant;  ///< Empty for shared memory: of a published text or a shared adapter.
  std::string worker;
  AttachmentId attachment;
  std::string adapter_digest;  ///< SHA-256; only for scope Adapter. May be missing.
  bool opens = false;          ///< The first record of the lease. May be missing.
  std::vector<MemoryGranted> granted;
  std::int64_t granted_unix_ms = 0;
};

/// `lease_erased`: what one transaction settled. After the lease's last memory has left it, later
/// records, about memory that was held or quarantined, only have members that are never missing.
struct LeaseErasedRecord : Message<LeaseErasedRecord> {
  LeaseId lease;
  std::string tenant;                ///< As in LeaseGrantedRecord.
  std::string worker;                ///< May be missing.
  std::optional<LeaseScope> scope;   ///< May be missing.
  std::string adapter_digest;        ///< May be missing.
  std::string reason;                ///< A RevokeReason. Missing while the lease is live.
  std::int64_t revoked_unix_ms = 0;  ///< Missing while the lease is live.
  std::int64_t fenced_unix_ms = 0;   ///< Missing until the fence.
  std::string proof;                 ///< Name of the fence proof. Missing until the fence.
  /// The worker had a spill file, and has exited or answered lease.unmap, which erases the key of
  /// the lease's blocks in that file. May be missing.
  bool spill_key_destroyed = false;
  std::vector<MemorySettled> settled;
  std::uint32_t open_extents = 0;           ///< How many are Open after this record.
  ErasureState state = ErasureState::Open;  ///< After this record.
};

/// The place of a record in the chain of its tenant's records. Shared memory has the empty tenant.
struct TenantPlace : Message<TenantPlace> {
  std::uint64_t tenant_record = 0;  ///< 1 for the tenant's first record, then one more each.
  std::string tenant_previous;      ///< Hash of the tenant's record before; zeros for the first.
  /// The latest `at_unix_ms` of the tenant's records before; 0 for the first. No older record is of
  /// a later time, also if the clock was set back: a reader who goes back knows where to end.
  std::int64_t tenant_previous_unix_ms = 0;
};

/// `audit_gap`: the disk was full. Records of several transactions were then written as one, by the
/// transaction of this record.
struct AuditGapRecord : Message<AuditGapRecord> {
  std::int64_t since_unix_ms = 0;
  std::int64_t until_unix_ms = 0;
  std::uint64_t grants = 0;     ///< lease_granted records that were not written on their own.
  std::uint64_t erasures = 0;   ///< As `grants`, for lease_erased.
  std::vector<LeaseId> leases;  ///< At most kMaxLeases of those concerned.
  static constexpr std::size_t kMaxLeases = 64;
};

}  // namespace leasehold::wire
