#include "worker/service_state.hpp"

#include <spdlog/spdlog.h>

#include "common/service_manager.hpp"
#include "ipc/control/json_fields.hpp"

namespace leasehold {
namespace {

wire::WorkerWeights message_of(const std::optional<Error>& missing) {
  if (!missing) return {};
  return {.missing = to_sentence(missing->detail)};
}

}  // namespace

void ServiceState::set(const std::optional<Error>& missing) {
  {
    const std::scoped_lock lock(mutex_);
    missing_ = missing;
  }
  notify_(message_of(missing));
  if (!missing) return spdlog::info("back in service: all weights are there");
  spdlog::error("out of service until the weights are back reason=\"{}\"", missing->detail);
  notify_service_manager("STATUS=Out of service: " + to_sentence(missing->detail));
}

void ServiceState::repeat() const {
  if (const auto lost = missing()) notify_(message_of(lost));
}

std::optional<Error> ServiceState::missing() const {
  const std::scoped_lock lock(mutex_);
  return missing_;
}

}  // namespace leasehold
