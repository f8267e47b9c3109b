/// Worker ↔ broker: attaching, weights, extents. The rules for all messages:
/// ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "ipc/control/messages_common.hpp"

namespace leasehold::wire {

/// `worker.attach`: first call of a worker. Reply: WorkerAttached with 3 descriptors: lease table
/// (read-only), worker line (read-write), an eventfd to ring after a unit that refused something.
///
/// With `resume`, the same process comes back to a broker that was started again, under the
/// attachment it had: the reply says `resumed`, repeats index and key, and carries no descriptors.
/// Refused with BrokerLost, final for this attachment: the table is another one, or the grace for
/// coming back is over.
struct WorkerAttach {
  static constexpr std::string_view kMethod = "worker.attach";
  std::string worker;  ///< A name, by the rules of TenantId.
  std::optional<AttachmentId> resume;
  RequestId request_id;
  Json to_json() const;
  static Result<WorkerAttach> from_json(const Json& json);
};

struct WorkerAttached {
  WorkerId worker;          ///< Index of this worker's revocation counter.
  AttachmentId attachment;  ///< To come back under, should the broker be started again.
  std::uint32_t slot_count = 0;
  std::string token_key;  ///< Hex; checks tokens meant for this worker only.
  bool resumed = false;
  std::string device = "cpu";  ///< Whose memory is lent: "cpu", "cuda:0" …
  std::string device_uuid;     ///< Of the card, as `nvidia-smi -L` shows it; empty for "cpu".
  Json to_json() const;
  static Result<WorkerAttached> from_json(const Json& json);
};

/// `weights.open`: an engine lease on a model's weights or a part of them. Reply: WeightsOpened
/// with 1 descriptor: read-write when the caller must fill the region, read-only when it is
/// published already. Errors: WeightsLoading (somebody else fills it; retry), PoolExhausted
/// (memory, lease slots, or this worker's share of them).
struct WeightsOpen {
  static constexpr std::string_view kMethod = "weights.open";
  std::string model;              ///< For people, as is the next; TextRule::Label both.
  std::string part;               ///< "model", a layer or a tensor; worker/model/weights_plan.hpp.
  std::uint64_t file_device = 0;  ///< The file's identity: same file, same weights.
  std::uint64_t file_inode = 0;
  std::uint64_t file_size_bytes = 0;
  std::int64_t file_mtime_ns = 0;
  std::string layout_digest;  ///< Hex SHA-256 of the region's layout.
  std::uint32_t layout_version = 0;
  std::uint64_t size_bytes = 0;  ///< Of the region.
  RequestId request_id;
  Json to_json() const;
  static Result<WeightsOpen> from_json(const Json& json);
};

struct WeightsOpened {
  RegionId region;
  LeaseId lease;  ///< Engine scope; no TTL, ends with the worker.
  bool published = false;
  Json to_json() const;
  static Result<WeightsOpened> from_json(const Json& json);
};

/// `weights.publish`: filled, unmapped and closed by the loader. Reply: Empty with 1 read-only
/// descriptor. Errors: StillWritable (a writable mapping is left somewhere; retry).
struct WeightsPublish {
  static constexpr std::string_view kMethod = "weights.publish";
  RegionId region;
  RequestId request_id;
  Json to_json() const;
  static Result<WeightsPublish> from_json(const Json& json);
};

/// `worker.ready`: the worker serves. Reply: ExtentShape.
struct WorkerReady {
  static constexpr std::string_view kMethod = "worker.ready";
  std::string address;  ///< Unix socket where tenants submit.
  std::string model;
  std::uint64_t kv_block_size_bytes = 0;
  RequestId request_id;
  Json to_json() const;
  static Result<WorkerReady> from_json(const Json& json);
};

struct ExtentShape {
  std::uint64_t extent_size_bytes = 0;  ///< 2 MiB · 2^k, one size for the pool.
  std::uint32_t blocks_per_extent = 0;
  Json to_json() const;
  static Result<ExtentShape> from_json(const Json& json);
};

/// `lease.attach`: deliver this lease's extents again (as a LeaseGrant). Reply: Empty.
struct LeaseAttach {
  static constexpr std::string_view kMethod = "lease.attach";
  LeaseId lease;
  Json to_json() const;
  static Result<LeaseAttach> from_json(const Json& json);
};

/// `lease.redeliver`: after a resume, memory of a lease that this worker still maps, one descriptor
/// per extent, at most 60 of them; in as many calls as it takes, before `worker.ready`. What was
/// not delivered by then is not mapped any more. Reply: Empty.
/// Errors: UntrustedSegment (not the memory that was granted), UnknownLease, PermissionDenied.
struct LeaseRedeliver {
  static constexpr std::string_view kMethod = "lease.redeliver";
  LeaseId lease;
  std::vector<ExtentId> extents;
  Json to_json() const;
  static Result<LeaseRedeliver> from_json(const Json& json);
};

/// Notification `event.report`: what a worker saw; the broker stamps its own sequence on it.
struct EventReport {
  static constexpr std::string_view kMethod = "event.report";
  std::vector<std::string> events;  ///< Each one JSON object of ipc/control/events.hpp.
  Json to_json() const;
  static Result<EventReport> from_json(const Json& json);
};

// ---------------------------------------------------------------- broker → worker

/// Call `worker.ping`: is anybody there? Any reply, an error too, says yes.
struct WorkerPing : Empty {
  static constexpr std::string_view kMethod = "worker.ping";
};

/// Call `lease.grant`: a new lease, or more extents for one already granted. Carries one descriptor
/// per extent. The reply (Empty) says that all are mapped and prefaulted; an error says that none
/// is.
struct LeaseGrant {
  static constexpr std::string_view kMethod = "lease.grant";
  LeaseId lease;
  TenantId tenant;
  std::uint32_t max_concurrent = 1;
  std::uint32_t max_blocks = 0;  ///< Ceiling for this lease.
  std::uint64_t extent_size_bytes = 0;
  std::vector<ExtentId> extents;
  Json to_json() const;
  static Result<LeaseGrant> from_json(const Json& json);
};

/// Call `lease.settle`: after the word left Live, for memory of a device. The reply (Empty) says
/// that the last launch that could touch memory of the lease has finished, by the device's own
/// word; from then on none begins. It is proof for this very generation, so a worker that cannot
/// say so does not answer.
struct LeaseSettle {
  static constexpr std::string_view kMethod = "lease.settle";
  LeaseId lease;
  Json to_json() const;
  static Result<LeaseSettle> from_json(const Json& json);
};

/// Call `lease.unmap`: after the fence. The reply (Empty) says that nothing of the lease is mapped
/// any more.
struct LeaseUnmap {
  static constexpr std::string_view kMethod = "lease.unmap";
  LeaseId lease;
  Json to_json() const;
  static Result<LeaseUnmap> from_json(const Json& json);
};

/// Call `lease.reclaim`: give up to `count` unused extents of a live lease. The reply names those
/// the worker has unmapped.
struct LeaseReclaim {
  static constexpr std::string_view kMethod = "lease.reclaim";
  LeaseId lease;
  std::uint32_t count = 1;
  Json to_json() const;
  static Result<LeaseReclaim> from_json(const Json& json);
};

struct ExtentsReclaimed {
  std::vector<ExtentId> extents;
  Json to_json() const;
  static Result<ExtentsReclaimed> from_json(const Json& json);
};

}  // namespace leasehold::wire
