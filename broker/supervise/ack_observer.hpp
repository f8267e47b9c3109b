/// The witness of WorkerAck: reads what a worker answered to `lease.settle`.
#pragma once

#include <optional>

#include "broker/books/fence_proof.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold {

class AckObserver {
 public:
  /// `reply` came over the connection of the lease's own worker, to the question about this very
  /// lease. An error is no evidence, and neither is something that is no answer to it.
  static std::optional<WorkerAck> observe(LeaseId asked, const Result<control::Payload>& reply);
};

}  // namespace leasehold
