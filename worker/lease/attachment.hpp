/// Attaches a worker to the broker: the lease table, the worker segment and the broker's wakeup_fd.
///
/// Two steps: `worker.attach` is answered, then descriptors, seals and versions are checked.
#pragma once

#include "ipc/control/lease_token.hpp"
#include "ipc/table/table_reader.hpp"
#include "ipc/table/worker_segment.hpp"
#include "worker/lease/broker_link.hpp"

namespace leasehold {

struct Attachment {
  WorkerId worker;
  AttachmentId id;  ///< To resume after a reconnect.
  TokenKey token_key;
  TableReader table;
  WorkerSegmentWriter segment;
  std::string device;       ///< The device whose memory the broker lends (wire::WorkerAttached).
  std::string device_uuid;  ///< Of a GPU.
  UniqueFd wakeup_fd;       ///< An eventfd, written after a unit that refused something.
};

/// Attaches under `worker_name`. Blocks; not for the I/O thread.
/// Errors: the broker's answer, TimedOut, ConnectionLost; those of check_protocol; UntrustedSegment
/// when a check fails.
Result<Attachment> attach_worker(BrokerLink& broker, const std::string& worker_name);

/// A worker needs a broker of its own protocol or a newer one, also when it resumes.
/// Errors: ProtocolMismatch.
Result<void> check_protocol(const wire::WorkerAttached& answer);

}  // namespace leasehold
