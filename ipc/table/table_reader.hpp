/// The lease table as a worker sees it: read-only, checked before use.
///
/// Lifetime: must outlive every reference that it returns. Threads: any thread may read.
#pragma once

#include <optional>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "ipc/region/mapping.hpp"
#include "ipc/segment/gate_set.hpp"
#include "ipc/segment/segment_layout.hpp"

namespace leasehold {

class LeaseTable;

class TableReader {
 public:
  /// Takes the descriptor that the broker sent. Checks, in this order: opened read-only, sealed
  /// against resizing, large enough for a header, version (stored last), magic, sizes. Then maps
  /// it, prefaults it and, where RLIMIT_MEMLOCK allows, locks it.
  /// Errors: UntrustedSegment names the first check that failed and is final. ConnectionLost is
  /// retryable: the broker has not stored the version yet.
  static Result<TableReader> attach(UniqueFd fd);

  /// A reader over the writer's own mapping, for tests that run both in one process: a sanitizer
  /// treats two mappings of one memory as two memories. The table must outlive the reader.
  static TableReader in_process(const LeaseTable& table);

  std::uint32_t slot_count() const { return slot_count_; }

  /// The counter to poll for this worker. Precondition: worker < kMaxWorkers.
  const std::atomic<std::uint64_t>& revocations(WorkerId worker) const;

  /// The word to compare for a lease that was granted. Errors: UnknownLease for a slot out of
  /// range.
  Result<LeaseDependency> dependency(LeaseId lease) const;

  /// The lease's current word. A slot that holds another generation reads as Fenced.
  LeaseWord word_of(LeaseId lease) const;

  /// Zero for a slot beyond the table; likewise for the two times below.
  TimePoint deadline(LeaseId lease) const;
  /// Zero when the lease is not draining.
  TimePoint drain_deadline(LeaseId lease) const;
  TimePoint word_stored_at(LeaseId lease) const;
  /// The time since the broker revoked the lease, up to `now`. Nothing while the lease is Live,
  /// even past its deadline, and once the slot holds another lease.
  std::optional<Duration> since_word_stored(LeaseId lease, TimePoint now) const;

 private:
  TableReader(Mapping mapping, std::uint32_t slot_count)
      : mapping_(std::move(mapping)), slot_count_(slot_count) {}
  TableView<const std::byte> view() const { return {mapping_.data()}; }
  TimePoint time_of(LeaseId lease, std::atomic<std::int64_t> LeaseSlot::* field) const;

  Mapping mapping_;
  std::uint32_t slot_count_;
};

}  // namespace leasehold
