/// First contact with the broker: the table, the worker segment, the wakeup_fd.
///
/// The steps, each with its one next step and its one way to fail:
///   Asking   → `worker.attach` answered       | what the broker said
///   Checking → descriptors, seals, versions   | UntrustedSegment, final; ConnectionLost, try again
///   Attached
#pragma once

#include "ipc/control/lease_token.hpp"
#include "ipc/table/table_reader.hpp"
#include "ipc/table/worker_segment.hpp"
#include "worker/lease/broker_link.hpp"

namespace leasehold {

struct Attachment {
  WorkerId worker;
  AttachmentId id;  ///< To come back under.
  TokenKey token_key;
  TableReader table;
  WorkerSegmentWriter segment;
  std::string device;       ///< Whose memory is lent (wire::WorkerAttached).
  std::string device_uuid;  ///< Of a card.
  UniqueFd wakeup_fd;       ///< An eventfd: rung after a unit that refused something.
};

/// Attaches under `worker_name`. Blocking; not from the I/O thread.
Result<Attachment> attach_worker(BrokerLink& broker, const std::string& worker_name);

}  // namespace leasehold
