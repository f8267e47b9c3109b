/// The waiting requests of all leases: their order, their deadlines and their ends.
///
/// A request waits in the queue of its lease (Tenancy::waiting), sorted by `is_admitted_before`. A
/// preempted request waits there too, and its blocks may be in swap or spilled.
///
/// Invariant: a request that leaves the queue without an admission gets exactly one completion or
/// rejection, its unused tokens are given back, and its swap blocks are free. No waiting request
/// expires before `next_expiry_`.
///
/// Pure: time is an argument. Threads: one (the engine's).
#pragma once

#include <cstdint>
#include <limits>

#include "worker/schedule/memory/publications.hpp"
#include "worker/schedule/memory/swap_planner.hpp"
#include "worker/schedule/pending_events.hpp"
#include "worker/schedule/scheduler_types.hpp"
#include "worker/schedule/tenants/tenancies.hpp"

namespace leasehold {

class WaitingRequests {
 public:
  WaitingRequests(const SchedulerLimits& limits, Tenancies& tenancies, Publications& publications,
                  SwapPlanner& swap, PendingEvents& events)
      : limits_(limits),
        tenancies_(tenancies),
        publications_(publications),
        swap_(swap),
        events_(events) {}

  /// Errors: QuotaConcurrent (the lease's queue is full), QueueFull.
  Result<void> check_room(const Tenancy& tenancy) const;
  /// Queues a new request. Precondition: its lease is known.
  void add(PromptRequest request);
  /// Queues a request that has an arrival already, such as a preempted one.
  void insert(PromptRequest request);
  bool contains(const RequestId& engine_request_id) const;
  bool has_users(LeaseId adapter) const;

  /// Ends a waiting request. Returns false when no such request waits. With `already_delivered` no
  /// Completed event is emitted.
  bool end(const RequestId& engine_request_id, const Completed& how,
           bool already_delivered = false);
  /// Ends every waiting request of the lease.
  void end_all(Tenancy& tenancy, const Completed& how);
  /// Ends every waiting request that uses the adapter under this lease.
  void end_users(LeaseId adapter, Completed how);
  /// Ends the requests whose deadline has passed.
  void drop_expired(TimePoint now);
  /// Rejects the first request of the lease. A preempted request was admitted before, so it gets a
  /// completion instead of a rejection.
  void reject_first(Tenancy& tenancy, Error reason);

 private:
  void note_deadline(const PromptRequest& request);
  void drop_head(const PromptRequest& request);
  void complete(const PromptRequest& request, Completed how, bool already_delivered = false);
  void reject(const PromptRequest& request, Error reason);

  static constexpr TimePoint kNever{std::numeric_limits<std::int64_t>::max()};

  const SchedulerLimits& limits_;
  Tenancies& tenancies_;
  Publications& publications_;
  SwapPlanner& swap_;
  PendingEvents& events_;
  TimePoint next_expiry_ = kNever;
  std::uint64_t arrivals_ = 0;
};

}  // namespace leasehold
