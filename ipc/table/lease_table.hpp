/// The lease table as its only writer, the broker, sees it.
///
/// Ownership: the table owns its memory object. Lifetime: readers' mappings outlive it and keep the
/// last words. Threads: one writer thread.
#pragma once

#include <span>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "ipc/region/mapping.hpp"
#include "ipc/region/memory_object.hpp"
#include "ipc/segment_layout.hpp"

#include "ipc/lease_word.hpp"

namespace leasehold {

class LeaseTable {
 public:
  /// All slots Closed, all counters 1. Errors: OutOfMemory, SystemError.
  static Result<LeaseTable> create(std::uint32_t slot_count);

  std::uint32_t slot_count() const { return slot_count_; }

  /// Closed or Fenced → Live under a higher generation. The deadline is stored before the word.
  void grant(LeaseId lease, TimePoint deadline);

  /// Takes words away from one worker: each becomes `to`, then the worker's counter moves once.
  /// The only function that lowers a word. Stamps the flip when a word leaves Live.
  struct Flip {
    LeaseId lease;
    LeaseState to;
    RevokeReason reason;
  };
  void take_away(WorkerId worker, std::span<const Flip> flips, TimePoint now);

  void set_deadline(LeaseId lease, TimePoint deadline);
  void set_drain_deadline(LeaseId lease, TimePoint deadline);

  LeaseWord word(std::uint32_t slot) const;
  std::uint64_t revocations(WorkerId worker) const;

  /// A descriptor that can only be mapped read-only, for a worker.
  Result<UniqueFd> reader_fd() const { return object_.open_read_only(); }

 private:
  friend class TableReader;  // for TableReader::beside
  LeaseTable(MemoryObject object, Mapping mapping, std::uint32_t slot_count);
  TableView<std::byte> view() const { return {mapping_.data()}; }

  MemoryObject object_;
  Mapping mapping_;
  std::uint32_t slot_count_;
};

}  // namespace leasehold
