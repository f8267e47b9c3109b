/// Broker → its device agent, over a private socket pair. The rules for all messages are in
/// ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/ids.hpp"
#include "ipc/control/messages/common.hpp"

namespace leasehold::wire {

/// `agent.query_device`: identifies the card. Reply: AgentDevice. Errors: NoDevice,
/// DeviceUnsupported and others, which say why this agent cannot serve a card.
struct AgentDevice : Message<AgentDevice> {
  static constexpr std::string_view kMethod = "agent.query_device";
  std::string uuid;  ///< "GPU-…"
  std::string name;
  std::uint64_t total_bytes = 0;  ///< All memory of the card, whether free or in use.
};

/// `agent.allocate`: allocates zeroed memory. Reply: AgentAllocated with 1 descriptor that a worker
/// imports. Errors: OutOfMemory, DeviceFault.
struct AgentAllocate : Message<AgentAllocate> {
  static constexpr std::string_view kMethod = "agent.allocate";
  std::uint64_t size_bytes = 0;
};

struct AgentAllocated : Message<AgentAllocated> {
  std::uint64_t object = 0;      ///< Id of the object between broker and agent; never reused.
  std::uint64_t size_bytes = 0;  ///< Rounded up to the driver's granularity.
};

/// `agent.clear`: fills the object with zeros; the reply (Empty) comes when that is done.
/// `agent.release`: closes the agent's handle. The memory is free once every process that imported
/// it has closed its handle too. Reply: Empty. Error of both calls: UnknownLease when there is no
/// such object.
struct AgentObject : Message<AgentObject> {
  static constexpr std::string_view kClear = "agent.clear";
  static constexpr std::string_view kRelease = "agent.release";
  std::uint64_t object = 0;
};

/// `agent.query_memory`: memory use as the driver and the agent count it at one moment.
struct AgentMemory : Message<AgentMemory> {
  static constexpr std::string_view kMethod = "agent.query_memory";
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t allocated_bytes = 0;  ///< Allocated by this agent and not released.
};

}  // namespace leasehold::wire
