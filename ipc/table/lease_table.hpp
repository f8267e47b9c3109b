/// The lease table as the broker, its only legitimate writer, sees it.
///
/// Another process of the broker's user can open the table for writing, too. So the broker never
/// trusts what it reads there: it keeps a copy of every entry (the shadow), decides by the shadow,
/// and compares the two (`repair`).
///
/// Ownership: the table owns its memory object. Lifetime: readers' mappings outlive it and keep the
/// last words. Threads: one writer thread.
#pragma once

#include <span>
#include <vector>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "ipc/region/mapping.hpp"
#include "ipc/region/memory_object.hpp"
#include "ipc/segment/launch_gate.hpp"
#include "ipc/segment/lease_word.hpp"
#include "ipc/segment/segment_layout.hpp"

namespace leasehold {

class LeaseTable {
 public:
  /// All slots Closed, all counters 1. Errors: OutOfMemory, SystemError.
  static Result<LeaseTable> create(std::uint32_t slot_count);

  /// Takes over a table that outlived its broker. Words and deadlines stay; every counter is
  /// incremented so that each worker rechecks. Errors: UntrustedSegment when the memory is not a
  /// table of this version or cannot be written; OutOfMemory, SystemError.
  static Result<LeaseTable> adopt(UniqueFd fd);

  std::uint32_t slot_count() const { return slot_count_; }

  /// Closed or Fenced → Live under a higher generation. The deadline is stored before the word.
  void grant(LeaseId lease, TimePoint deadline);

  struct LeaseChange {
    LeaseId lease;
    LeaseState to;
    RevokeReason reason;
  };
  /// Stores the new words of one worker's leases, then increments that worker's counter once. The
  /// only function that revokes or fences a word. Records the time when a word leaves Live.
  /// `Memory` is the machine's by default; the simulator executes the same stores in its own.
  template <class Memory = StdMemory>
  void store_words(WorkerId worker, std::span<const LeaseChange> changes, TimePoint now) {
    const auto index = static_cast<std::uint32_t>(worker.value);
    check_counter(index);
    RevokeCore<Memory>::store_words(
        changes,
        [&](const LeaseChange& change) -> typename RevokeCore<Memory>::WordStore {
          const LeaseWord after = begin_change(change, now);
          return {Memory::word(&view().slot(change.lease.slot).word), after.bits};
        },
        *Memory::word(&view().counter(index).revocations));
    shadow().counter(index).revocations.fetch_add(1, std::memory_order_relaxed);
  }

  /// Stores the word that recovery decided on, in a new table or where the previous broker died
  /// before it stored the word. Call before any other store. Precondition: the generation is not
  /// older than the one in the table.
  void restore(LeaseId lease, LeaseState state, RevokeReason reason);

  void set_deadline(LeaseId lease, TimePoint deadline);
  void set_drain_deadline(LeaseId lease, TimePoint deadline);

  /// The table's current contents; other processes may have written them.
  LeaseWord word(std::uint32_t slot) const;
  TimePoint deadline(std::uint32_t slot) const;
  TimePoint drain_deadline(std::uint32_t slot) const;
  TimePoint word_stored_at(std::uint32_t slot) const;
  std::uint64_t revocations(WorkerId worker) const;

  /// Compares header, counters and every slot that was ever granted with the shadow, and writes
  /// back what differs. Then increments every worker's counter, so that a worker that read a wrong
  /// word rechecks. Returns the changed entries, including those that earlier stores found changed.
  std::vector<TableEntry> repair();

  /// True when a store found a changed entry that `repair` has not reported yet.
  bool has_detected_tampering() const { return !tampered_.empty(); }

  /// A descriptor for a worker, which can map it only read-only.
  Result<UniqueFd> reader_fd() const { return object_.open_read_only(); }

  /// The writable descriptor, for the descriptor store that keeps it while no broker runs. Never
  /// for a worker.
  const UniqueFd& writable_fd() const { return object_.fd(); }

 private:
  friend class TableReader;  // for TableReader::in_process
  LeaseTable(MemoryObject object, Mapping mapping, std::uint32_t slot_count);
  struct alignas(kCacheLineBytes) CacheLine {
    std::byte bytes[kCacheLineBytes];
  };
  void initialise();
  void copy_to_shadow();
  TableView<std::byte> view() const { return {mapping_.data()}; }
  TableView<std::byte> shadow() { return {shadow_.front().bytes}; }
  LeaseWord shadow_word(std::uint32_t slot) { return {shadow().slot(slot).word.load()}; }
  /// Records the change in the shadow. Returns the word to store.
  LeaseWord begin_change(const LeaseChange& change, TimePoint now);
  void check_slot(std::uint32_t slot);
  void check_counter(std::uint32_t worker);
  bool slot_matches_shadow(std::uint32_t slot);
  bool counter_matches_shadow(std::uint32_t worker);
  void increment_counter(std::uint32_t worker);
  void repair_header(std::vector<TableEntry>& changed);

  MemoryObject object_;
  Mapping mapping_;
  std::uint32_t slot_count_;
  std::vector<CacheLine> shadow_;  ///< Private memory, laid out as the table.
  std::uint32_t used_slots_ = 0;
  std::vector<TableEntry> tampered_;
};

}  // namespace leasehold
