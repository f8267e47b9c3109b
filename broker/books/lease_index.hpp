/// What is call_pending of all open leases at every event, answered without looking at them: which
/// deadline comes first, what a tenant is charged, what a worker holds and since when it owes
/// proof.
///
/// An entry is a copy of what a record said when it was last entered; a decision enters every lease
/// it touched when it is complete (broker/decide/journal_decision.hpp). Threads: one.
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

  /// Enters the lease as it stands, in place of what was entered before.
  void enter(const LeaseRecord& record);
  void erase(LeaseId lease);

  /// Live leases by what ends them first: TTL or drain. Those without either are not in it.
  const ByTime& deadlines() const { return deadlines_; }

  /// Blocks charged to the tenant's leases that are not fenced.
  std::uint64_t charged(const TenantId& tenant) const;

  /// What one worker's leases amount to. Times are of the revocation, of the fence, of the
  /// question.
  struct OfWorker {
    std::set<LeaseId> open;
    ByTime revoked;
    ByTime fenced;
    ByTime call_pending;  ///< Live ones about which the worker has not answered since then.
  };
  const OfWorker& of(AttachmentId worker) const;
  const std::map<AttachmentId, OfWorker>& workers() const { return workers_; }

 private:
  struct Entry {
    AttachmentId worker;
    TenantId tenant;
    std::uint32_t charged = 0;
    LeaseState state = LeaseState::Live;
    TimePoint time;
    TimePoint call_pending;  ///< Zero: nothing is.
  };
  ByTime* set_of(const Entry& entry);

  std::unordered_map<LeaseId, Entry> entries_;
  ByTime deadlines_;
  std::map<TenantId, std::uint64_t> charged_;
  std::map<AttachmentId, OfWorker> workers_;
};

}  // namespace leasehold
