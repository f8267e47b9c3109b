/// Every slot of the lease table and the lease that stands in it.
///
/// Slots are never compacted; a slot is used again only after its lease is Fenced *and* its memory
/// came back, always under a higher generation, the longest unused first. Threads: one.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/books/lease.hpp"
#include "broker/books/lease_index.hpp"
#include "broker/books/rows.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold {

/// Extents on their way to the worker, and who waits for them.
struct PendingGrant {
  CallId call;
  std::set<ExtentId> waiting;
  std::optional<Error> refused;
};

struct LeaseRecord {
  AnyLease lease;
  wire::LeaseScope scope = wire::LeaseScope::Tenant;

  // Tenant scope.
  TenantId tenant;
  ConnectionId holder;  ///< Zero: the broker was started again, nobody has claimed it yet.
  std::uint32_t holder_uid = 0;
  ProcessIdentity holder_process;  ///< What the holder is over a restart.
  journal::RequestKey request;     ///< The acquire it answers.
  Duration ttl{};
  std::vector<ExtentId> extents;          ///< Not free yet.
  std::uint32_t quarantined_extents = 0;  ///< Went there, and never came back.
  std::uint32_t charged_blocks = 0;
  std::vector<PendingGrant> grants;  ///< The first may be the acquire itself.
  bool acquired = false;             ///< The holder was told of the lease.
  std::vector<CallId> shrinks;
  std::vector<CallId> late_shrinks;  ///< Their callers heard TimedOut; the worker may still answer.
  std::set<ExtentId> unclaimed;      ///< Of a growth whose caller heard TimedOut.
  std::optional<LeaseId> replaced_by;  ///< Blocks were set apart for that one, once.
  std::optional<LeaseId> replaces;     ///< The other end of it.

  // Engine scope.
  RegionId region;
  std::string model;  ///< Whose weights, and which part of them; for people.
  std::string part;
  std::optional<CallId> open_call;  ///< Waits until it is written down and has memory.

  TimePoint deadline;                  ///< Zero: none.
  TimePoint last_deadline;             ///< No renewal goes past it. Zero: no end.
  TimePoint drain_deadline;            ///< Zero: not draining.
  std::uint32_t grants_in_flight = 0;  ///< Sent to the worker, not answered.
  TimePoint call_pending_since;  ///< Since when the worker owes an answer about it; zero: not.
  bool sent_to_worker = false;   ///< Descriptors of it left the broker.
  bool fenced_during_grant = false;
  bool memory_returned = false;
  TimePoint granted_at;
  TimePoint flipped_at;               ///< As the table says; zero until it has said so.
  TimePoint rebound_at;               ///< Zero: no request went on under another lease.
  std::optional<LeaseId> rebound_to;  ///< That other lease, of the first request that did.
  TimePoint stopped_at;  ///< Its worker stopped it before the flip, by itself; zero: not.
  wire::RevokeClocks clocks;

  LeaseId id() const { return id_of(lease); }
  AttachmentId worker() const { return worker_of(lease); }
  LeaseState state() const { return state_of(lease); }
  bool is(LeaseState wanted) const { return state() == wanted; }
  /// Of a grant or renewal at `now`: a TTL from then on, and never past the longest life.
  TimePoint deadline_after(TimePoint now) const;
  /// When the word left Live, or that was decided. Precondition: not Live.
  TimePoint revoked_at() const;
};

class LeaseBook {
 public:
  explicit LeaseBook(std::uint32_t slot_count);

  /// The slot's next lease gets a higher generation. For slots without a lease, before any is open.
  void start_above(std::uint32_t slot, std::uint64_t generation);
  /// Generations up to this one are within what was reserved.
  void note_reserved(std::uint64_t generation) { highest_generation_ = generation; }

  /// A lease of a broker before this one, in its slot. Precondition: the slot is free.
  LeaseRecord& restore(LeaseRecord record);

  bool has_free_slot() const { return !free_slots_.empty(); }

  /// Opens a lease in a free slot under its next generation. Precondition: has_free_slot().
  LeaseRecord& open(AttachmentId worker, wire::LeaseScope scope);

  /// UnknownLease (never granted), StaleGeneration (the slot has moved on).
  Result<LeaseRecord*> find(LeaseId id);

  /// Null when the lease is closed or was never granted.
  const LeaseRecord* find_open(LeaseId id) const;

  /// The lease is fenced and its memory is back: the slot may be used again.
  void close(LeaseRecord& record);

  /// Leases that are not closed. The ids are copied, so deciders may close while they walk.
  std::vector<LeaseId> open_leases() const { return {open_.begin(), open_.end()}; }

  /// The lease that stands in this slot, fenced or not; null when none ever did, or for a slot
  /// beyond the table.
  const LeaseRecord* in_slot(std::uint32_t slot) const;

  /// The record of an id from `open_leases`. Precondition: it is one.
  LeaseRecord& at(LeaseId id);

  std::size_t open_count() const { return open_.size(); }
  const LeaseIndex& index() const { return index_; }
  /// Enters the lease as it stands now; nothing when it is closed.
  void enter_in_index(LeaseId id);
  /// Open leases on one worker. The ids are copied.
  std::vector<LeaseId> leases_on(AttachmentId worker) const;

  /// Every record there is, fenced ones until their slot is used again.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.record) visit(*slot.record);
    }
  }

  /// Records that are not closed.
  template <class Visit>
  void for_each_open(Visit visit) const {
    for (const LeaseId id : open_) visit(*slots_[id.slot].record);
  }

  std::uint64_t generation(std::uint32_t slot) const { return slots_[slot].generation; }
  /// Of any slot, ever.
  std::uint64_t highest_generation() const { return highest_generation_; }
  std::uint32_t slot_count() const { return static_cast<std::uint32_t>(slots_.size()); }

 private:
  struct Slot {
    std::uint64_t generation = 0;
    std::optional<LeaseRecord> record;
  };

  std::vector<Slot> slots_;
  std::deque<std::uint32_t> free_slots_;
  std::set<LeaseId> open_;
  LeaseIndex index_;
  std::uint64_t highest_generation_ = 0;
};

}  // namespace leasehold
