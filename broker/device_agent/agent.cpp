#include "broker/device_agent/agent.hpp"

#include <fmt/format.h>

#include "ipc/control/messages_agent.hpp"

namespace leasehold {
namespace {

using control::Json;
using control::Payload;

Payload empty_payload() {
  return {.body = wire::Empty{}.to_json(), .fds = {}};
}

}  // namespace

Result<Payload> DeviceAllocations::answer(const std::string& method, const Json& params) {
  if (method == wire::AgentDevice::kMethod) return card();
  if (method == wire::AgentAllocate::kMethod) return allocate(params);
  if (method == wire::AgentObject::kClear) return clear(params);
  if (method == wire::AgentObject::kRelease) return release(params);
  if (method == wire::AgentMemory::kMethod) return memory();
  return fail(Errc::UnknownMethod, fmt::format("the device agent has no method {}", method));
}

Result<Payload> DeviceAllocations::card() const {
  wire::AgentDevice card{.uuid = TRY(context_->uuid())};
  card.name = TRY(context_->name());
  card.total_bytes = TRY(context_->memory()).total_bytes;
  return Payload{.body = card.to_json(), .fds = {}};
}

Result<Payload> DeviceAllocations::allocate(const Json& params) {
  const auto ask = TRY(wire::AgentAllocate::from_json(params));
  cuda::DeviceMemory memory = TRY(cuda::DeviceMemory::create(*context_, ask.size_bytes));
  TRY(cleaner_.clear(memory));  // the driver does not zero memory that another owner had
  UniqueFd fd = TRY(memory.export_fd());
  const wire::AgentAllocated made{.object = next_object_++, .size_bytes = memory.size_bytes()};
  objects_.emplace(made.object, std::move(memory));
  Payload payload{.body = made.to_json(), .fds = {}};
  payload.fds.push_back(std::move(fd));
  return payload;
}

Result<Payload> DeviceAllocations::clear(const Json& params) {
  const auto found = TRY(find(params));
  TRY(cleaner_.clear(found->second));
  return empty_payload();
}

Result<Payload> DeviceAllocations::release(const Json& params) {
  objects_.erase(TRY(find(params)));
  return empty_payload();
}

Result<Payload> DeviceAllocations::memory() const {
  const cuda::DeviceMemoryInfo counted = TRY(context_->memory());
  wire::AgentMemory memory{.free_bytes = counted.free_bytes, .total_bytes = counted.total_bytes};
  for (const auto& [id, object] : objects_) memory.allocated_bytes += object.size_bytes();
  return Payload{.body = memory.to_json(), .fds = {}};
}

Result<std::map<std::uint64_t, cuda::DeviceMemory>::iterator> DeviceAllocations::find(
    const Json& params) {
  const auto ask = TRY(wire::AgentObject::from_json(params));
  const auto found = objects_.find(ask.object);
  if (found != objects_.end()) return found;
  return fail(Errc::UnknownLease, fmt::format("the device agent has no object {}", ask.object));
}

}  // namespace leasehold
