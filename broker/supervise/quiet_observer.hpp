/// The only witness of LaunchQuiet: looks at worker lines after words were lowered.
///
/// Lifetime: a watched segment stays until `forget` of its worker. Threads: one.
#pragma once

#include <vector>

#include "broker/books/fence_proof.hpp"
#include "common/clock.hpp"
#include "ipc/table/worker_segment.hpp"

namespace leasehold {

class QuietObserver {
 public:
  /// Takes the snapshot now. Precondition: the words of these leases are down and the worker's
  /// counter has moved, in program order before this call (pairs with GateCore::begin_unit).
  struct Request {
    AttachmentId worker;
    Touches scope = Touches::TenantMemory;
    std::vector<LeaseId> leases;
  };
  void watch(const WorkerSegmentReader& segment, Request request);

  /// Proof for every lease whose units are over now. Never blocks.
  std::vector<LaunchQuiet> observe();

  /// Looks again and again until everybody is quiet or `at_most` has passed; all proofs there are
  /// by then. For right after a flip: a unit on a CPU takes some 15 µs, less than to be called
  /// again.
  std::vector<LaunchQuiet> observe_for(Duration at_most, const Clock& clock);

  /// The worker is gone; other evidence covers its leases.
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
