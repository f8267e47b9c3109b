// Holder → broker: acquire, renew, hold, release, grow, shrink.
#include "ipc/control/messages_holder.hpp"

#include "ipc/control/message_limits.hpp"

namespace leasehold::wire {
namespace {

constexpr auto kLeaseAcquire = [](auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("blocks", m.blocks, kBlocksOrZero);
  fields.field("ttl_ms", m.ttl_ms, kUpToOneDay_ms);
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("replaces", m.replaces);
  fields.field("request_id", m.request_id);
};

constexpr auto kLeaseAcquired = [](auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("token", m.token, TextRule::NonEmpty);
  fields.field("address", m.address, TextRule::SocketPath);
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("deadline_boottime_ns", m.deadline_boottime_ns, kBoottime_ns);
  fields.field("ttl_ms", m.ttl_ms, kUpToOneDay_ms);
  fields.field("blocks", m.blocks);
};

constexpr auto kLeaseRenew = [](auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("request_id", m.request_id);
};

constexpr auto kLeaseRenewed = [](auto& m, auto& fields) {
  fields.field("deadline_boottime_ns", m.deadline_boottime_ns, kBoottime_ns);
};

constexpr auto kLeaseHold = [](auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("token", m.token, TextRule::NonEmpty);
  fields.field("request_id", m.request_id);
};

constexpr auto kLeaseRelease = kLeaseRenew;

constexpr auto kLeaseGrow = [](auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("extents", m.extents, kExtents);
  fields.field("request_id", m.request_id);
};

constexpr auto kLeaseShrink = kLeaseGrow;

constexpr auto kLeaseResized = [](auto& m, auto& fields) {
  fields.field("extents", m.extents);
  fields.field("blocks", m.blocks);
};

}  // namespace

Json LeaseAcquire::to_json() const {
  return write_fields(*this, kLeaseAcquire);
}
Result<LeaseAcquire> LeaseAcquire::from_json(const Json& json) {
  return read_fields<LeaseAcquire>(json, kLeaseAcquire);
}

Json LeaseAcquired::to_json() const {
  return write_fields(*this, kLeaseAcquired);
}
Result<LeaseAcquired> LeaseAcquired::from_json(const Json& json) {
  return read_fields<LeaseAcquired>(json, kLeaseAcquired);
}

Json LeaseRenew::to_json() const {
  return write_fields(*this, kLeaseRenew);
}
Result<LeaseRenew> LeaseRenew::from_json(const Json& json) {
  return read_fields<LeaseRenew>(json, kLeaseRenew);
}

Json LeaseRenewed::to_json() const {
  return write_fields(*this, kLeaseRenewed);
}
Result<LeaseRenewed> LeaseRenewed::from_json(const Json& json) {
  return read_fields<LeaseRenewed>(json, kLeaseRenewed);
}

Json LeaseHold::to_json() const {
  return write_fields(*this, kLeaseHold);
}
Result<LeaseHold> LeaseHold::from_json(const Json& json) {
  return read_fields<LeaseHold>(json, kLeaseHold);
}

Json LeaseRelease::to_json() const {
  return write_fields(*this, kLeaseRelease);
}
Result<LeaseRelease> LeaseRelease::from_json(const Json& json) {
  return read_fields<LeaseRelease>(json, kLeaseRelease);
}

Json LeaseGrow::to_json() const {
  return write_fields(*this, kLeaseGrow);
}
Result<LeaseGrow> LeaseGrow::from_json(const Json& json) {
  return read_fields<LeaseGrow>(json, kLeaseGrow);
}

Json LeaseShrink::to_json() const {
  return write_fields(*this, kLeaseShrink);
}
Result<LeaseShrink> LeaseShrink::from_json(const Json& json) {
  return read_fields<LeaseShrink>(json, kLeaseShrink);
}

Json LeaseResized::to_json() const {
  return write_fields(*this, kLeaseResized);
}
Result<LeaseResized> LeaseResized::from_json(const Json& json) {
  return read_fields<LeaseResized>(json, kLeaseResized);
}

}  // namespace leasehold::wire
