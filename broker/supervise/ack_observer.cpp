#include "broker/supervise/ack_observer.hpp"

#include "ipc/control/messages.hpp"

namespace leasehold {

std::optional<WorkerAck> AckObserver::observe(LeaseId asked,
                                              const Result<control::Payload>& reply) {
  if (!reply || !wire::Empty::from_json(reply->body)) return std::nullopt;
  return WorkerAck(asked);
}

}  // namespace leasehold
