/// Every slot of the lease table and the lease in it.
///
/// A slot is reused only after its lease is Fenced *and* its memory is back, always under a higher
/// generation, the longest unused slot first. Threads: one.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/books/lease.hpp"
#include "broker/books/lease_index.hpp"
#include "broker/books/rebind_limiter.hpp"
#include "broker/books/rows.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold {

/// Extents of one pool sent to the worker, and the call that waits for them.
struct PendingGrant {
  CallId call;
  MemoryPool pool = MemoryPool::Kv;
  std::set<ExtentId> waiting;
  std::optional<Error> refused;
};

struct LeaseRecord {
  AnyLease lease;
  wire::LeaseScope scope = wire::LeaseScope::Tenant;

  // Tenant scope.
  TenantId tenant;
  ApiKeyId api_key;     ///< The key that it was acquired with; empty: none.
  ConnectionId holder;  ///< Zero: not claimed since a broker restart.
  std::uint32_t holder_uid = 0;
  ProcessIdentity holder_process;  ///< Identifies the holder after a broker restart.
  /// The acquire that created it. Shared scope: the publisher, no id, and the digest of the text.
  journal::RequestKey request;
  Duration ttl{};
  std::vector<ExtentId> extents;          ///< Of both pools, until they are free or quarantined.
  std::uint32_t quarantined_extents = 0;  ///< No longer in `extents`.
  std::uint32_t charged_blocks = 0;       ///< Of KV memory only.
  /// The highest max_blocks of the tenant since the grant, before the one in force. Not journaled.
  std::uint32_t earlier_max_blocks = 0;
  std::vector<PendingGrant> grants;  ///< Until `acquired`, the first is the acquire.
  bool acquired = false;             ///< The acquire was answered.
  /// What the acquire took from the rebind limit. Not journaled.
  std::optional<RebindToken> rebind;
  std::vector<CallId> shrinks;
  std::vector<CallId> late_shrinks;    ///< Answered TimedOut; the worker may still answer.
  std::set<ExtentId> unclaimed;        ///< Of a growth that was answered TimedOut.
  std::optional<LeaseId> replaced_by;  ///< That lease was charged instead of this one.
  std::optional<LeaseId> replaces;     ///< The inverse of replaced_by.
  /// Granted while the lease that it replaces was live. Not journaled.
  std::optional<wire::RebindMode> replaces_as;
  /// It was live when it was replaced, and the replacement is live and charged. Not journaled.
  bool charged_to_replacement = false;

  /// Until when its memory is kept for adoption. Zero: it was never kept. Not journaled, like the
  /// next two.
  TimePoint retained_until;
  std::optional<LeaseId> adopted_from;  ///< The lease that `adopted_extents` come from.
  std::uint32_t adopted_extents = 0;

  // Engine scope.
  RegionId region;
  std::string model;  ///< The model and the part of its weights, as shown to operators.
  std::string part;
  /// Waits for memory and the journal, for the fill, or for the memory of the lease that it
  /// replaces on another worker.
  std::optional<CallId> open_call;

  // Shared scope. `part` is the text's name; `charged_blocks` are the published ones, which no
  // tenant pays for: 0 until the fill is done.
  std::string text;               ///< To publish it again. Not journaled.
  std::uint32_t text_tokens = 0;  ///< Of the whole text. Not journaled.

  TimePoint deadline;        ///< Zero: none.
  TimePoint last_deadline;   ///< Renewals end here. Zero: no limit.
  TimePoint drain_deadline;  ///< Zero: not draining.
  /// Of the revocation at the drain deadline.
  RevokeReason drain_reason = RevokeReason::DrainDeadline;
  std::uint32_t grants_in_flight = 0;  ///< Sent to the worker, not answered.
  TimePoint call_pending_since;        ///< The worker has not answered a call since. Zero: none.
  bool sent_to_worker = false;         ///< Its descriptors left the broker.
  bool fenced_during_grant = false;
  /// Restored from the journal: its worker may still map a grant of the broker before, until it has
  /// resumed. Not journaled.
  bool may_be_mapping = false;
  bool memory_returned = false;
  bool is_unmapped = false;  ///< No worker maps its memory. Not journaled.
  TimePoint granted_at;
  TimePoint flipped_at;               ///< As stored in the table; zero until WordsStored.
  TimePoint rebound_at;               ///< Zero: no request was rebound to another lease.
  std::optional<LeaseId> rebound_to;  ///< The lease of the first rebound request.
  TimePoint stopped_at;  ///< When the worker stopped it at its deadline, before the flip; or zero.
  wire::RevokeClocks clocks;
  bool refusal_reported = false;  ///< Its event was written.

  LeaseId id() const { return id_of(lease); }
  AttachmentId worker() const { return worker_of(lease); }
  LeaseState state() const { return state_of(lease); }
  bool is(LeaseState wanted) const { return state() == wanted; }
  /// What counts against the tenant's quota.
  std::uint32_t quota_blocks() const {
    return is(LeaseState::Fenced) || charged_to_replacement ? 0 : charged_blocks;
  }
  /// The deadline of a grant or renewal at `now`: one TTL later, at most `last_deadline`.
  TimePoint deadline_after(TimePoint now) const;
  /// When the word left Live, or when that was decided if it is not stored yet.
  /// Precondition: not Live.
  TimePoint revoked_at() const;
};

class LeaseBook {
 public:
  explicit LeaseBook(std::uint32_t slot_count);

  /// The slot's next lease gets a higher generation. Precondition: the slot has no lease.
  void start_above(std::uint32_t slot, std::uint64_t generation);
  /// Generations up to this one are reserved in the journal.
  void note_reserved(std::uint64_t generation) { highest_generation_ = generation; }

  /// Restores a lease of an earlier broker in its slot. Precondition: the slot is free.
  LeaseRecord& restore(LeaseRecord record);

  bool has_free_slot() const { return !free_slots_.empty(); }

  /// Opens a lease in a free slot under its next generation. Precondition: has_free_slot().
  LeaseRecord& open(AttachmentId worker, wire::LeaseScope scope);

  /// Errors: UnknownLease (never granted), StaleGeneration (its slot was reused).
  Result<LeaseRecord*> find(LeaseId id);

  /// Null if the lease is closed or was never granted.
  const LeaseRecord* find_open(LeaseId id) const;

  /// Makes the slot free. Precondition: the lease is Fenced and has no extents.
  void close(LeaseRecord& record);

  /// Leases that are not closed. A copy, so that callers may close leases while iterating.
  std::vector<LeaseId> open_leases() const { return {open_.begin(), open_.end()}; }

  /// The newest lease in this slot, closed ones included; null if there is none or the slot is out
  /// of range.
  const LeaseRecord* in_slot(std::uint32_t slot) const;

  /// Precondition: the lease is open.
  LeaseRecord& at(LeaseId id);

  std::size_t open_count() const { return open_.size(); }
  const LeaseIndex& index() const { return index_; }
  /// Updates the index entry of the lease; does nothing if it is closed.
  void enter_in_index(LeaseId id);
  /// Open leases on one worker; a copy.
  std::vector<LeaseId> leases_on(AttachmentId worker) const;

  /// Visits every record; closed ones remain until their slot is reused.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.record) visit(*slot.record);
    }
  }

  /// Visits every open record.
  template <class Visit>
  void for_each_open(Visit visit) const {
    for (const LeaseId id : open_) visit(*slots_[id.slot].record);
  }

  std::uint64_t generation(std::uint32_t slot) const { return slots_[slot].generation; }
  /// Over all slots.
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
