/// The account of each lease's memory, as the audit chain has it
/// (ipc/control/messages/audit/erasure.hpp).
///
/// The book of extents reports each extent that is lent and each change of an extent's fate. A
/// decision takes the changes and writes them as records. What is held or quarantined after its
/// lease has ended is counted here, so that the lease's state is known. Both follow from the
/// extents, so they are restored from the journal. Threads: one.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "broker/books/ids.hpp"
#include "ipc/control/messages/audit/erasure.hpp"

namespace leasehold {

using wire::ErasureState;
using wire::MemoryFate;

/// The part of an extent that its lease's account needs.
struct ExtentAccount {
  LeaseId lease;    ///< For a quarantined or held extent: its last lease.
  TenantId tenant;  ///< Of that lease; empty for shared memory.
  wire::MemoryPool pool = wire::MemoryPool::Kv;
  MemoryFate fate = MemoryFate::Open;
};

/// A change by one extent.
struct MemoryChange {
  LeaseId lease;
  TenantId tenant;
  wire::MemoryPool pool = wire::MemoryPool::Kv;
  std::optional<MemoryFate> from;  ///< Nothing: the extent was lent.
  MemoryFate to = MemoryFate::Open;
  std::optional<LeaseId> other{};  ///< The lease that adopts the extent, or its lease before.
};

/// Adds to the entry that differs in extents and bytes only, or adds an entry.
void add_to(std::vector<wire::MemoryGranted>& sums, const wire::MemoryGranted& more);
void add_to(std::vector<wire::MemorySettled>& sums, const wire::MemorySettled& more);

class MemoryAccounts {
 public:
  struct Unreturned {
    std::uint32_t held = 0;
    std::uint32_t quarantined = 0;
    bool operator==(const Unreturned&) const = default;
  };

  void lend(const ExtentAccount& extent, std::optional<LeaseId> adopted_from = std::nullopt);
  /// Changes the fate of the extent. Does nothing if the fate is the same.
  void settle(ExtentAccount& extent, MemoryFate to,
              std::optional<LeaseId> adopted_by = std::nullopt);
  /// Counts an extent of an earlier broker.
  void restore(const ExtentAccount& extent);

  /// The extents of the lease that are held and quarantined.
  Unreturned unreturned(LeaseId lease) const;
  /// The changes since the last call, oldest first.
  std::vector<MemoryChange> take_changes() { return std::exchange(changes_, {}); }

 private:
  void count(const ExtentAccount& extent, int by);

  std::map<LeaseId, Unreturned> unreturned_;  ///< Only leases with such extents.
  std::vector<MemoryChange> changes_;
};

}  // namespace leasehold
