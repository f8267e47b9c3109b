/// The slots of the lease table, and the newest lease of each slot.
///
/// A slot is reused only after its lease is Fenced *and* the lease's memory has returned. The new
/// lease always has a higher generation. The slot that has been unused for longest is taken first.
/// Threads: one.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/books/lease.hpp"
#include "broker/books/lease_index.hpp"
#include "broker/books/pending_calls.hpp"
#include "broker/books/rebind_limiter.hpp"
#include "broker/books/rows.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold {

/// What the table and the worker showed of the end of a lease.
struct ObservedEnd {
  TimePoint word_stored_at;  ///< When the word left Live, as in the table; zero until WordsStored.
  /// When the worker stopped the lease at its deadline, before the word was stored; zero if it did
  /// not.
  TimePoint stopped_at;
  TimePoint rebound_at;               ///< Zero: no request was rebound to another lease.
  std::optional<LeaseId> rebound_to;  ///< The lease of the first rebound request.
  wire::RevokeClocks clocks;
  bool refusal_reported = false;  ///< The event of a refused launch was written.
};

struct LeaseRecord {
  AnyLease lease;
  wire::LeaseScope scope = wire::LeaseScope::Tenant;

  // Members for leases of scope Tenant.
  TenantId tenant;
  ApiKeyId api_key;  ///< The API key of the acquire; empty: none.
  /// See LeaseAcquire: the lease counts as a lease of a scavenger, and covers no reserve of its
  /// tenant.
  bool scavenger = false;
  ConnectionId holder;  ///< Zero: no connection has claimed the lease since a broker restart.
  std::uint32_t holder_uid = 0;
  ProcessIdentity holder_process;  ///< Identifies the holder after a broker restart.
  /// Identifies the acquire that created the lease. Shared scope: the publisher's uid, no id, and
  /// the digest of the text.
  journal::RequestKey request;
  Duration ttl{};
  std::vector<ExtentId> extents;  ///< Extents of both pools that are neither free nor quarantined.
  std::uint32_t quarantined_extents = 0;  ///< Number removed from `extents` by quarantine.
  std::uint32_t charged_blocks = 0;       ///< Blocks of KV memory only.
  /// The highest max_blocks that the tenant has had since the grant, without the current one. Not
  /// journaled.
  std::uint32_t earlier_max_blocks = 0;
  PendingCalls calls;
  bool acquired = false;  ///< True once the acquire was answered.
  /// The token that the acquire took from the rebind limit. Not journaled.
  std::optional<RebindToken> rebind;
  std::optional<LeaseId> replaced_by;  ///< The lease that was charged instead of this one.
  std::optional<LeaseId> replaces;     ///< The inverse of replaced_by.
  /// Set if the replaced lease was live at the grant of this one. Not journaled.
  std::optional<wire::RebindMode> replace_mode;
  /// This lease was live when it was replaced, and the replacement is live and charged. Not
  /// journaled.
  bool charged_to_replacement = false;

  /// End of the time for which the memory is retained. Zero: it was never retained. Not
  /// journaled; neither are the next two members.
  TimePoint retained_until;
  std::optional<LeaseId> adopted_from;  ///< The lease that `adopted_extents` come from.
  std::uint32_t adopted_extents = 0;

  // Members for leases of scope Engine.
  RegionId region;
  /// Model name, as shown to operators. Shared scope: see there.
  std::string model;
  std::string part;

  // Members for leases of scope Shared. `part` is the name of the text. `model` is the adapter that
  // computes it, empty for the base model, and `adapter_version` its version. `charged_blocks`
  // counts the published blocks, which are charged to no tenant; it is 0 until the fill is done.
  std::string text;               ///< Kept so that it can be published again. Not journaled.
  std::uint32_t text_tokens = 0;  ///< Length of the whole text. Not journaled.

  // Members for leases of scope Adapter. `tenant` is the owner, empty for a shared adapter, and
  // `part` is the adapter's name. No blocks are charged.
  std::uint32_t adapter_version = 0;  ///< Also of the adapter of a text.
  bool filled = false;                ///< The worker has read the file.

  TimePoint deadline;         ///< Zero: none.
  TimePoint wanted_deadline;  ///< The deadline if no ceiling were earlier. Not journaled.
  TimePoint last_deadline;    ///< A renewal cannot extend `deadline` beyond this. Zero: no limit.
  TimePoint drain_deadline;   ///< Zero: not draining.
  /// The reason of the revocation at the drain deadline.
  RevokeReason drain_reason = RevokeReason::DrainDeadline;
  bool sent_to_worker = false;  ///< The lease's descriptors have left the broker.
  bool fenced_during_grant = false;
  /// The lease was restored from the journal, and its worker, which has not resumed yet, may still
  /// map a grant of the previous broker. Not journaled.
  bool may_be_mapping = false;
  bool memory_returned = false;
  bool is_unmapped = false;  ///< No worker maps the memory. Not journaled.
  TimePoint granted_at;
  ObservedEnd end;

  LeaseId id() const { return id_of(lease); }
  AttachmentId worker() const { return worker_of(lease); }
  LeaseState state() const { return state_of(lease); }
  bool is(LeaseState wanted) const { return state() == wanted; }
  /// True while the acquire waits for the worker.
  bool is_acquiring() const { return !acquired && !calls.grants.empty(); }
  /// The name of the adapter; nothing for a lease of another scope.
  std::optional<AdapterName> adapter() const {
    const bool is_adapter = scope == wire::LeaseScope::Adapter;
    return is_adapter ? std::optional(AdapterName{part}) : std::nullopt;
  }
  /// The name of the adapter that computes a text; nothing for the base model, and for a lease of
  /// another scope.
  std::optional<AdapterName> text_adapter() const {
    const bool has_adapter = scope == wire::LeaseScope::Shared && !model.empty();
    return has_adapter ? std::optional(AdapterName{model}) : std::nullopt;
  }
  /// Blocks that count against the tenant's quota.
  std::uint32_t quota_blocks() const {
    return is(LeaseState::Fenced) || charged_to_replacement ? 0 : charged_blocks;
  }
  /// The wanted deadline of a grant or renewal at `now`: one TTL later, at most `last_deadline`.
  TimePoint deadline_after(TimePoint now) const;
  /// When the word left Live; if the new word is not stored yet, when the revocation was decided.
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
  /// The highest generation in all slots.
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
