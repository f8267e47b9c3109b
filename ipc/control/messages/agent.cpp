// Broker → device agent.
#include "ipc/control/messages/agent.hpp"

#include "ipc/control/messages/codec.hpp"
#include "ipc/control/messages/limits.hpp"

namespace leasehold::wire {
void describe(Is<AgentDevice> auto& m, auto& fields) {
  fields.field("uuid", m.uuid, TextRule::NonEmpty);
  fields.field("name", m.name);
  fields.field("total_bytes", m.total_bytes, kPositiveBytes);
}

void describe(Is<AgentAllocate> auto& m, auto& fields) {
  fields.field("size_bytes", m.size_bytes, kPositiveBytes);
}

void describe(Is<AgentAllocated> auto& m, auto& fields) {
  fields.field("object", m.object);
  fields.field("size_bytes", m.size_bytes, kPositiveBytes);
}

void describe(Is<AgentObject> auto& m, auto& fields) {
  fields.field("object", m.object);
}

void describe(Is<AgentMemory> auto& m, auto& fields) {
  fields.field("free_bytes", m.free_bytes);
  fields.field("total_bytes", m.total_bytes);
  fields.field("allocated_bytes", m.allocated_bytes);
}

template struct Message<AgentDevice>;
template struct Message<AgentAllocate>;
template struct Message<AgentAllocated>;
template struct Message<AgentObject>;
template struct Message<AgentMemory>;

}  // namespace leasehold::wire
