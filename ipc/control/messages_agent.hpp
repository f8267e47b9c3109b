/// Broker → its device agent, over a socket pair of their own. The rules for all messages:
/// ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/ids.hpp"
#include "ipc/control/messages_common.hpp"

namespace leasehold::wire {

/// `agent.query_device`: which card it is. Reply: AgentDevice. Errors: NoDevice, DeviceUnsupported
/// …: why this agent can serve none.
struct AgentDevice {
  static constexpr std::string_view kMethod = "agent.query_device";
  std::string uuid;  ///< "GPU-…"
  std::string name;
  std::uint64_t total_bytes = 0;  ///< All its memory, whoever has it.
  Json to_json() const;
  static Result<AgentDevice> from_json(const Json& json);
};

/// `agent.allocate`: new memory, all zeros. Reply: AgentAllocated with 1 descriptor that a worker
/// imports. Errors: OutOfMemory, DeviceFault.
struct AgentAllocate {
  static constexpr std::string_view kMethod = "agent.allocate";
  std::uint64_t size_bytes = 0;
  Json to_json() const;
  static Result<AgentAllocate> from_json(const Json& json);
};

struct AgentAllocated {
  std::uint64_t object = 0;      ///< Names it between these two; never used twice.
  std::uint64_t size_bytes = 0;  ///< Rounded up to what the driver can do.
  Json to_json() const;
  static Result<AgentAllocated> from_json(const Json& json);
};

/// `agent.clear`: zeros, when the reply (Empty) comes. `agent.release`: the agent's handle is gone;
/// the bytes are free when everybody who imported it has let go. Error: UnknownLease when there is
/// no such object.
struct AgentObject {
  static constexpr std::string_view kClear = "agent.clear";
  static constexpr std::string_view kRelease = "agent.release";
  std::uint64_t object = 0;
  Json to_json() const;
  static Result<AgentObject> from_json(const Json& json);
};

/// `agent.query_memory`: what the driver and the agent count at one moment.
struct AgentMemory {
  static constexpr std::string_view kMethod = "agent.query_memory";
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t allocated_bytes = 0;  ///< By this agent, and not released.
  Json to_json() const;
  static Result<AgentMemory> from_json(const Json& json);
};

}  // namespace leasehold::wire
