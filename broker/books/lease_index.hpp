/// Finds what every event needs without a scan of all leases: the next deadline, the blocks charged
/// to a tenant, and the leases and timeouts of a worker.
///
/// An entry is a copy of its record. A decision updates the entries of all leases it changed when
/// it is complete (broker/decide/journal_decision.hpp). Threads: one.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "broker/books/ids.hpp"
#include "common/clock.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold {

struct LeaseRecord;

class LeaseIndex {
 public:
  using ByTime = std::set<std::pair<TimePoint, LeaseId>>;

  /// Adds or replaces the entry of the lease.
  void enter(const LeaseRecord& record);
  void erase(LeaseId lease);

  /// Live leases by their TTL or drain deadline, whichever is earlier. Leases without a deadline
  /// are not listed.
  const ByTime& deadlines() const { return deadlines_; }

  /// What a tenant has on one worker. Fenced leases do not count.
  struct Holding {
    std::uint32_t leases = 0;
    std::uint32_t live = 0;  ///< Live leases; no launch begins under the others.
    std::uint64_t charged_blocks = 0;
    std::uint64_t live_blocks = 0;  ///< Charged to live leases.
  };
  using Holdings = std::map<AttachmentId, Holding>;
  const Holdings& of(const TenantId& tenant) const;

  /// Blocks charged to the tenant's leases that are not fenced.
  std::uint64_t charged(const TenantId& tenant) const;

  /// The leases of one worker. Each ByTime has the time of the event that it is named after.
  struct WorkerEntry {
    std::set<LeaseId> open;
    ByTime revoked;
    ByTime fenced;
    ByTime call_pending;  ///< Live leases with a call that the worker has not answered.
  };
  const WorkerEntry& of(AttachmentId worker) const;

  /// Leases on memory of the owner's adapters that are not fenced; an empty tenant owns the shared
  /// ones.
  const std::set<LeaseId>& adapters_of(const TenantId& owner) const;
  const std::map<AttachmentId, WorkerEntry>& workers() const { return workers_; }

 private:
  struct Entry {
    AttachmentId worker;
    TenantId tenant;
    std::optional<TenantId> adapter_owner;  ///< Nothing: the lease is on no adapter's memory.
    std::uint32_t charged = 0;              ///< See LeaseRecord::quota_blocks.
    LeaseState state = LeaseState::Live;
    TimePoint time;                ///< The time of the entry in its ByTime.
    TimePoint call_pending_since;  ///< Zero: no call is pending.
  };
  ByTime* set_of(const Entry& entry);
  void add_to_holding(const Entry& entry);
  void remove_from_holding(const Entry& entry);

  std::unordered_map<LeaseId, Entry> entries_;
  ByTime deadlines_;
  std::map<TenantId, Holdings> holdings_;
  std::map<TenantId, std::set<LeaseId>> adapters_;  ///< By owner; no set is empty.
  std::map<AttachmentId, WorkerEntry> workers_;
};

}  // namespace leasehold
