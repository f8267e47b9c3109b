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
  announce(missing, false);
  if (!missing) return spdlog::info("back in service: all weights are there");
  spdlog::error("out of service until the weights are back reason=\"{}\"", missing->detail);
}

/// The broker ordered the sleep, so only the end of the waking is announced to it.
void ServiceState::set_sleep(SleepPhase phase) {
  {
    const std::scoped_lock lock(mutex_);
    is_asleep_ = phase == SleepPhase::Asleep;
  }
  health_->set_asleep(phase != SleepPhase::Awake);
  switch (phase) {
    case SleepPhase::Asleep:
      spdlog::info("asleep: the weights are given back until the next request");
      return notify_service_manager("STATUS=Asleep until the next request");
    case SleepPhase::Waking:
      return spdlog::info("waking: the weights are being restored");
    case SleepPhase::Awake:
      spdlog::info("awake: all weights are there");
      return announce(std::nullopt, false);
  }
}

void ServiceState::repeat() const {
  const auto lost = missing();
  if (lost || is_asleep()) announce(lost, is_asleep());
}

bool ServiceState::is_asleep() const {
  const std::scoped_lock lock(mutex_);
  return is_asleep_;
}

std::optional<Error> ServiceState::missing() const {
  const std::scoped_lock lock(mutex_);
  return missing_;
}

void ServiceState::announce(const std::optional<Error>& missing, bool is_asleep) const {
  wire::WorkerWeights weights{.asleep = is_asleep};
  if (missing) weights.missing = to_sentence(missing->detail);
  broker_->notify(std::string(weights.kMethod), {.body = weights.to_json()});
  const std::string rest = is_asleep ? "STATUS=Asleep until the next request" : serving_;
  notify_service_manager(missing ? "STATUS=Out of service: " + *weights.missing : rest);
}

}  // namespace leasehold
