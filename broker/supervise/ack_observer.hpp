/// Creates WorkerAck proofs from replies to `lease.settle`. No other code creates them.
#pragma once

#include <optional>

#include "broker/books/fence_proof.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold {

class AckObserver {
 public:
  /// Precondition: `reply` answers `lease.settle` for `asked` on the connection of that lease's
  /// worker. Returns nothing for an error or a malformed reply.
  static std::optional<WorkerAck> observe(LeaseId asked, const Result<control::Payload>& reply);
};

}  // namespace leasehold
