/// Announces whether this worker has its weights, or sleeps without them, to the log, the broker,
/// the service manager and
/// `/health`.
///
/// Threads: any. Lifetime: `broker` and `health` outlive the object.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "worker/engine/sleep_cycle.hpp"
#include "worker/http/health.hpp"
#include "worker/lease/broker_link.hpp"

namespace leasehold {

class ServiceState {
 public:
  ServiceState(std::string serving, BrokerLink& broker, http::Health& health)
      : serving_(std::move(serving)), broker_(&broker), health_(&health) {}

  /// Status text for the service manager while no part is missing.
  const std::string& serving() const { return serving_; }

  /// Sets the reason why a part of the weights cannot be restored; nothing once all parts are
  /// restored.
  void set(const std::optional<Error>& missing);
  void set_sleep(SleepPhase phase);
  /// Announces a loss or sleep again, for a broker that has not received it.
  void repeat() const;
  std::optional<Error> missing() const;
  /// False while the worker wakes.
  bool is_asleep() const;

 private:
  void announce(const std::optional<Error>& missing, bool is_asleep) const;

  std::string serving_;
  BrokerLink* broker_;
  http::Health* health_;
  mutable std::mutex mutex_;
  std::optional<Error> missing_;
  bool is_asleep_ = false;
};

}  // namespace leasehold
