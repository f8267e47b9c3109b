/// Creates LaunchQuiet proofs: after lease words are stored, reads the worker segment until every
/// unit that was announced before the store has ended. No other code creates these proofs.
///
/// Lifetime: a watched segment outlives its watch, which ends with the proof or with `forget`.
/// Threads: one.
#pragma once

#include <vector>

#include "broker/books/fence_proof.hpp"
#include "common/clock.hpp"
#include "ipc/table/worker_segment.hpp"

namespace leasehold {

class QuietObserver {
 public:
  struct Request {
    AttachmentId worker;
    Touches scope = Touches::TenantMemory;
    std::vector<LeaseId> leases;
  };
  /// Takes the snapshot and starts a watch. Precondition: before this call, in program order, the
  /// words of these leases became Revoked and the worker's counter was incremented (pairs with
  /// GateCore::begin_unit).
  void watch(const WorkerSegmentReader& segment, Request request);

  /// Returns proofs for all watched leases whose units have ended. Never blocks.
  std::vector<LaunchQuiet> observe();

  /// Polls until all watched leases are quiet or `at_most` has passed, and returns the proofs
  /// found. Used directly after a revocation, because a unit on a CPU takes about 15 µs, which is
  /// shorter than a timer's delay.
  std::vector<LaunchQuiet> observe_for(Duration at_most, const Clock& clock);

  /// Drops the watches of a worker that has exited; its ProcessExit covers its leases.
  void forget(AttachmentId worker);

  bool is_waiting() const { return !watches_.empty(); }

 private:
  struct Watch {
    const WorkerSegmentReader* segment;
    WorkerSegmentReader::Snapshot seen;
    Request request;
  };
  std::vector<Watch> watches_;
};

}  // namespace leasehold
