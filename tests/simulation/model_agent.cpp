#include "tests/simulation/model_agent.hpp"

#include "ipc/control/messages/agent.hpp"

namespace leasehold::simulation {
namespace {

control::Payload empty_payload() {
  return {.body = wire::Empty{}.to_json(), .fds = {}};
}

}  // namespace

Result<control::Payload> Agent::answer(std::string_view method, const control::Json& params) {
  if (method == wire::AgentDevice::kMethod) {
    return control::Payload{.body = wire::AgentDevice{.uuid = "GPU-1",
                                                      .name = "card",
                                                      .total_bytes = deps_.card->total_bytes()}
                                        .to_json(),
                            .fds = {}};
  }
  if (method == wire::AgentAllocate::kMethod) return allocate(params);
  if (method == wire::AgentMemory::kMethod) return count();
  const auto ask = TRY(wire::AgentObject::from_json(params));
  const auto found = objects_.find(ask.object);
  if (found == objects_.end()) violated("the agent got a call for an object it does not have");
  if (method == wire::AgentObject::kClear) return clear(found->second);
  deps_.card->release(found->second);
  objects_.erase(found);
  return empty_payload();
}

Result<control::Payload> Agent::allocate(const control::Json& params) {
  const auto ask = TRY(wire::AgentAllocate::from_json(params));
  const auto memory =
      deps_.machine.one_in(24) ? std::nullopt : deps_.card->allocate(ask.size_bytes, *this);
  if (!memory) {
    deps_.coverage.happened(CardEvent::AllocationFailed);
    return fail(Errc::OutOfMemory, "the card is full");
  }
  if (!deps_.planted_bugs.agent_does_not_clear) deps_.card->clear(*memory);
  objects_[next_object_] = *memory;
  const wire::AgentAllocated made{.object = next_object_++, .size_bytes = ask.size_bytes};
  control::Payload payload{.body = made.to_json(), .fds = {}};
  payload.fds.push_back(deps_.card->descriptor(*memory));
  return payload;
}

Result<control::Payload> Agent::clear(std::size_t memory) {
  if (deps_.machine.one_in(32)) {
    deps_.coverage.happened(CardEvent::ClearFailed);
    return fail(Errc::DeviceFault, "the card does not clear memory");
  }
  if (!deps_.planted_bugs.agent_does_not_clear) deps_.card->clear(memory);
  return empty_payload();
}

control::Payload Agent::count() const {
  wire::AgentMemory memory{.free_bytes = deps_.card->free_bytes(),
                           .total_bytes = deps_.card->total_bytes()};
  for (const auto& [id, each] : objects_) memory.allocated_bytes += deps_.card->at(each).size_bytes;
  if (deps_.planted_bugs.agent_fakes_free_bytes) {
    memory.free_bytes = memory.total_bytes - memory.allocated_bytes;
  }
  return {.body = memory.to_json(), .fds = {}};
}

}  // namespace leasehold::simulation
