/// Attaches a worker to the broker: the lease table, the worker segment and the broker's wakeup_fd.
///
/// Sends `worker.attach`, then checks the descriptors, seals and versions of the answer.
#pragma once

#include "ipc/control/tokens/lease_token.hpp"
#include "ipc/table/table_reader.hpp"
#include "ipc/table/worker_segment.hpp"
#include "worker/lease/broker_link.hpp"

namespace leasehold {

struct Attachment {
  WorkerId worker;
  AttachmentId id;  ///< Identifies the attachment after a reconnect.
  TokenKey token_key;
  TableReader table;
  WorkerSegmentWriter segment;
  std::string device;       ///< The device whose memory the broker lends (wire::WorkerAttached).
  std::string device_uuid;  ///< Empty unless the device is a GPU.
  UniqueFd wakeup_fd;       ///< An eventfd, written after a unit that reported a refusal.
};

/// Attaches under `worker_name`. Blocks, so do not call it on the I/O thread.
/// Errors: the broker's answer, TimedOut, ConnectionLost; those of check_protocol; UntrustedSegment
/// when a check fails.
Result<Attachment> attach_worker(BrokerLink& broker, const std::string& worker_name);

/// Checks that the broker's protocol is not older than the worker's. Also applies when a worker
/// resumes.
/// Errors: ProtocolMismatch.
Result<void> check_protocol(const wire::WorkerAttached& answer);

}  // namespace leasehold
