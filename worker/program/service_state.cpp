#include "worker/program/service_state.hpp"

#include <spdlog/spdlog.h>

#include "common/machine/service_manager.hpp"
#include "ipc/control/messages/json_fields.hpp"

namespace leasehold {

void ServiceState::set(const std::optional<Error>& missing) {
  {
    const std::scoped_lock lock(mutex_);
    missing_ = missing;
  }
  health_->set_weights_missing(missing.has_value());
  announce(missing);
  if (!missing) return spdlog::info("back in service: all weights are there");
  spdlog::error("out of service until the weights are back reason=\"{}\"", missing->detail);
}

void ServiceState::repeat() const {
  if (const auto lost = missing()) announce(lost);
}

std::optional<Error> ServiceState::missing() const {
  const std::scoped_lock lock(mutex_);
  return missing_;
}

void ServiceState::announce(const std::optional<Error>& missing) const {
  wire::WorkerWeights weights;
  if (missing) weights.missing = to_sentence(missing->detail);
  broker_->notify(std::string(weights.kMethod), {.body = weights.to_json()});
  notify_service_manager(missing ? "STATUS=Out of service: " + *weights.missing : serving_);
}

}  // namespace leasehold
