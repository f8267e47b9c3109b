/// The lease table as a worker sees it: read-only, checked before use.
///
/// Lifetime: the words it hands out live as long as it does. Threads: any may read.
#pragma once

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "ipc/region/mapping.hpp"
#include "ipc/segment/gate_set.hpp"
#include "ipc/segment/segment_layout.hpp"

namespace leasehold {

class LeaseTable;

class TableReader {
 public:
  /// Takes the descriptor the broker sent. Checks, in this order: opened read-only, sealed against
  /// resizing, large enough for a header, version (stored last), magic, sizes. Then maps, prefaults
  /// and, where the limit allows, locks it.
  /// Errors: UntrustedSegment names the first check that failed, final; NotYet is retryable
  /// (ConnectionLost): the broker has not stored the version.
  static Result<TableReader> attach(UniqueFd fd);

  /// A reader over the writer's own mapping, for a worker in the broker's process: a sanitizer
  /// takes two mappings of the same memory for two memories. The table outlives it.
  static TableReader in_process(const LeaseTable& table);

  std::uint32_t slot_count() const { return slot_count_; }

  /// The counter to poll for this worker. Precondition: worker < kMaxWorkers.
  const std::atomic<std::uint64_t>& revocations(WorkerId worker) const;

  /// What to compare for a lease granted as Live. UnknownLease for a slot out of range.
  Result<LeaseDependency> dependency(LeaseId lease) const;

  /// What stands in the lease's slot right now, compared with the lease's own generation:
  /// Live, Revoked or Fenced; a slot that has moved on to another generation is Fenced.
  LeaseWord word_of(LeaseId lease) const;

  // Zero for a slot beyond the table.
  TimePoint deadline(LeaseId lease) const;
  /// Zero when the lease is not draining.
  TimePoint drain_deadline(LeaseId lease) const;
  TimePoint flipped_at(LeaseId lease) const;

 private:
  TableReader(Mapping mapping, std::uint32_t slot_count)
      : mapping_(std::move(mapping)), slot_count_(slot_count) {}
  TableView<const std::byte> view() const { return {mapping_.data()}; }
  TimePoint time_of(LeaseId lease, std::atomic<std::int64_t> LeaseSlot::* field) const;

  Mapping mapping_;
  std::uint32_t slot_count_;
};

}  // namespace leasehold
