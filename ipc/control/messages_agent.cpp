// Broker → device agent.
#include "ipc/control/messages_agent.hpp"

#include "ipc/control/message_limits.hpp"

namespace leasehold::wire {
namespace {

constexpr auto kAgentDevice = [](auto& m, auto& fields) {
  fields.field("uuid", m.uuid, TextRule::NonEmpty);
  fields.field("name", m.name);
  fields.field("total_bytes", m.total_bytes, kPositiveBytes);
};

constexpr auto kAgentAllocate = [](auto& m, auto& fields) {
  fields.field("size_bytes", m.size_bytes, kPositiveBytes);
};

constexpr auto kAgentAllocated = [](auto& m, auto& fields) {
  fields.field("object", m.object);
  fields.field("size_bytes", m.size_bytes, kPositiveBytes);
};

constexpr auto kAgentObject = [](auto& m, auto& fields) { fields.field("object", m.object); };

constexpr auto kAgentMemory = [](auto& m, auto& fields) {
  fields.field("free_bytes", m.free_bytes);
  fields.field("total_bytes", m.total_bytes);
  fields.field("allocated_bytes", m.allocated_bytes);
};

}  // namespace

Json AgentDevice::to_json() const {
  return write_fields(*this, kAgentDevice);
}
Result<AgentDevice> AgentDevice::from_json(const Json& json) {
  return read_fields<AgentDevice>(json, kAgentDevice);
}

Json AgentAllocate::to_json() const {
  return write_fields(*this, kAgentAllocate);
}
Result<AgentAllocate> AgentAllocate::from_json(const Json& json) {
  return read_fields<AgentAllocate>(json, kAgentAllocate);
}

Json AgentAllocated::to_json() const {
  return write_fields(*this, kAgentAllocated);
}
Result<AgentAllocated> AgentAllocated::from_json(const Json& json) {
  return read_fields<AgentAllocated>(json, kAgentAllocated);
}

Json AgentObject::to_json() const {
  return write_fields(*this, kAgentObject);
}
Result<AgentObject> AgentObject::from_json(const Json& json) {
  return read_fields<AgentObject>(json, kAgentObject);
}

Json AgentMemory::to_json() const {
  return write_fields(*this, kAgentMemory);
}
Result<AgentMemory> AgentMemory::from_json(const Json& json) {
  return read_fields<AgentMemory>(json, kAgentMemory);
}

}  // namespace leasehold::wire
