// Worker ↔ broker: attaching, weights, extents.
#include "ipc/control/messages_worker.hpp"

#include "ipc/control/message_limits.hpp"

namespace leasehold::wire {
namespace {

constexpr auto kWorkerAttach = [](auto& m, auto& fields) {
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("resume", m.resume);
  fields.field("request_id", m.request_id);
};

constexpr auto kWorkerAttached = [](auto& m, auto& fields) {
  fields.field("worker", m.worker);
  fields.field("attachment", m.attachment);
  fields.field("slot_count", m.slot_count);
  fields.field("token_key", m.token_key, TextRule::HexKey);
  fields.field("resumed", m.resumed);
  fields.field("device", m.device, TextRule::NonEmpty);
  fields.field("device_uuid", m.device_uuid);
};

constexpr auto kWeightsOpen = [](auto& m, auto& fields) {
  fields.field("model", m.model, TextRule::Label);
  fields.field("part", m.part, TextRule::Label);
  fields.field("file_device", m.file_device);
  fields.field("file_inode", m.file_inode);
  fields.field("file_size_bytes", m.file_size_bytes);
  fields.field("file_mtime_ns", m.file_mtime_ns);
  fields.field("layout_digest", m.layout_digest, TextRule::HexKey);
  fields.field("layout_version", m.layout_version);
  fields.field("size_bytes", m.size_bytes, kPositiveBytes);
  fields.field("request_id", m.request_id);
};

constexpr auto kWeightsOpened = [](auto& m, auto& fields) {
  fields.field("region", m.region);
  fields.field("lease", m.lease);
  fields.field("published", m.published);
};

constexpr auto kWeightsPublish = [](auto& m, auto& fields) {
  fields.field("region", m.region);
  fields.field("request_id", m.request_id);
};

constexpr auto kWorkerReady = [](auto& m, auto& fields) {
  fields.field("address", m.address, TextRule::SocketPath);
  fields.field("model", m.model, TextRule::Label);
  fields.field("kv_block_size_bytes", m.kv_block_size_bytes, kPositiveBytes);
  fields.field("request_id", m.request_id);
};

constexpr auto kExtentShape = [](auto& m, auto& fields) {
  fields.field("extent_size_bytes", m.extent_size_bytes, kPositiveBytes);
  fields.field("blocks_per_extent", m.blocks_per_extent, kBlocks);
};

constexpr auto kLeaseAttach = [](auto& m, auto& fields) { fields.field("lease", m.lease); };

constexpr auto kLeaseRedeliver = [](auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("extents", m.extents);
};

constexpr auto kEventReport = [](auto& m, auto& fields) {
  fields.field("events", m.events, TextRule::NonEmpty);
};

constexpr auto kLeaseGrant = [](auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("tenant", m.tenant);
  fields.field("max_concurrent", m.max_concurrent, kConcurrent);
  fields.field("max_blocks", m.max_blocks, kBlocksOrZero);
  fields.field("extent_size_bytes", m.extent_size_bytes, kPositiveBytes);
  fields.field("extents", m.extents);
};

constexpr auto kLeaseSettle = kLeaseAttach;

constexpr auto kLeaseUnmap = kLeaseAttach;

constexpr auto kLeaseReclaim = [](auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("count", m.count, kExtents);
};

constexpr auto kExtentsReclaimed = [](auto& m, auto& fields) {
  fields.field("extents", m.extents);
};

}  // namespace

Json WorkerAttach::to_json() const {
  return write_fields(*this, kWorkerAttach);
}
Result<WorkerAttach> WorkerAttach::from_json(const Json& json) {
  return read_fields<WorkerAttach>(json, kWorkerAttach);
}

Json WorkerAttached::to_json() const {
  return write_fields(*this, kWorkerAttached);
}
Result<WorkerAttached> WorkerAttached::from_json(const Json& json) {
  return read_fields<WorkerAttached>(json, kWorkerAttached);
}

Json WeightsOpen::to_json() const {
  return write_fields(*this, kWeightsOpen);
}
Result<WeightsOpen> WeightsOpen::from_json(const Json& json) {
  return read_fields<WeightsOpen>(json, kWeightsOpen);
}

Json WeightsOpened::to_json() const {
  return write_fields(*this, kWeightsOpened);
}
Result<WeightsOpened> WeightsOpened::from_json(const Json& json) {
  return read_fields<WeightsOpened>(json, kWeightsOpened);
}

Json WeightsPublish::to_json() const {
  return write_fields(*this, kWeightsPublish);
}
Result<WeightsPublish> WeightsPublish::from_json(const Json& json) {
  return read_fields<WeightsPublish>(json, kWeightsPublish);
}

Json WorkerReady::to_json() const {
  return write_fields(*this, kWorkerReady);
}
Result<WorkerReady> WorkerReady::from_json(const Json& json) {
  return read_fields<WorkerReady>(json, kWorkerReady);
}

Json ExtentShape::to_json() const {
  return write_fields(*this, kExtentShape);
}
Result<ExtentShape> ExtentShape::from_json(const Json& json) {
  return read_fields<ExtentShape>(json, kExtentShape);
}

Json LeaseAttach::to_json() const {
  return write_fields(*this, kLeaseAttach);
}
Result<LeaseAttach> LeaseAttach::from_json(const Json& json) {
  return read_fields<LeaseAttach>(json, kLeaseAttach);
}

Json LeaseRedeliver::to_json() const {
  return write_fields(*this, kLeaseRedeliver);
}
Result<LeaseRedeliver> LeaseRedeliver::from_json(const Json& json) {
  return read_fields<LeaseRedeliver>(json, kLeaseRedeliver);
}

Json EventReport::to_json() const {
  return write_fields(*this, kEventReport);
}
Result<EventReport> EventReport::from_json(const Json& json) {
  return read_fields<EventReport>(json, kEventReport);
}

Json LeaseGrant::to_json() const {
  return write_fields(*this, kLeaseGrant);
}
Result<LeaseGrant> LeaseGrant::from_json(const Json& json) {
  return read_fields<LeaseGrant>(json, kLeaseGrant);
}

Json LeaseSettle::to_json() const {
  return write_fields(*this, kLeaseSettle);
}
Result<LeaseSettle> LeaseSettle::from_json(const Json& json) {
  return read_fields<LeaseSettle>(json, kLeaseSettle);
}

Json LeaseUnmap::to_json() const {
  return write_fields(*this, kLeaseUnmap);
}
Result<LeaseUnmap> LeaseUnmap::from_json(const Json& json) {
  return read_fields<LeaseUnmap>(json, kLeaseUnmap);
}

Json LeaseReclaim::to_json() const {
  return write_fields(*this, kLeaseReclaim);
}
Result<LeaseReclaim> LeaseReclaim::from_json(const Json& json) {
  return read_fields<LeaseReclaim>(json, kLeaseReclaim);
}

Json ExtentsReclaimed::to_json() const {
  return write_fields(*this, kExtentsReclaimed);
}
Result<ExtentsReclaimed> ExtentsReclaimed::from_json(const Json& json) {
  return read_fields<ExtentsReclaimed>(json, kExtentsReclaimed);
}

}  // namespace leasehold::wire
