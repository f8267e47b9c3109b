/// The sequence records in the memory of leases: clears those of sequences that ended, and adopts
/// those that another process left.
///
/// Commit units write the records, so each read and each clear is a Commit unit too, which polls
/// the record's lease.
///
/// Invariant: after `clear_released`, the memory of a live lease has no record of a sequence that
/// ended, so no other process adopts one.
///
/// Threads: one (the engine's).
#pragma once

#include <span>
#include <vector>

#include "ipc/segment/thread_gate.hpp"
#include "ipc/table/table_reader.hpp"
#include "kernels/backend.hpp"
#include "kernels/model/config.hpp"
#include "worker/engine/step_refusals.hpp"
#include "worker/kv/adopted_records.hpp"
#include "worker/kv/lease_memory.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

class LeasedRecords {
 public:
  /// All of these outlive the object.
  struct Dependencies {
    Scheduler* scheduler = nullptr;
    const LeaseMemory* memory = nullptr;
    Backend* backend = nullptr;
    ThreadGate* gate = nullptr;  ///< The engine thread's gate.
    const TableReader* table = nullptr;
    RevocationObserver* observer = nullptr;
  };
  /// What `adopt` found.
  struct Adopted {
    std::uint32_t records = 0;
    std::uint32_t blocks = 0;
    std::vector<Error> dropped;  ///< FileCorrupt: an invalid record; LeaseRevoked, LeaseFenced.
  };

  LeasedRecords(const ModelConfig& model, const Dependencies& dependencies)
      : n_vocab_(model.n_vocab), deps_(dependencies) {}

  /// Clears the records that the scheduler released since the last call. Called before any of their
  /// blocks is written again. Records whose lease has ended, or whose extent was reclaimed, are
  /// never read again and need no clearing.
  void clear_released();
  /// Caches the prefixes that the records in the memory of a new lease describe, and clears the
  /// records. Precondition: the lease has run no request, and its memory is host memory.
  Adopted adopt(LeaseId lease);

 private:
  /// Runs one unit. Returns false, without running it, when the lease is not live.
  template <class Unit>
  bool run_for(LeaseId lease, Unit&& unit);
  bool clear(LeaseId lease, std::span<const BlockId> first_blocks);
  std::vector<BlockId> find(LeaseId lease);
  Result<std::vector<std::byte>> read(LeaseId lease, std::span<const BlockId> blocks,
                                      std::uint64_t bytes_per_block);
  Result<void> take(LeaseId lease, BlockId first, AdoptedRecords& into);

  std::uint32_t n_vocab_;
  Dependencies deps_;
};

}  // namespace leasehold
