/// Announces whether this worker has its weights to the log, the broker, the service manager and
/// `/health`.
///
/// Threads: any. Lifetime: the broker's session outlives the object.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "worker/http/health.hpp"
#include "worker/lease/broker_session.hpp"

namespace leasehold {

class ServiceState {
 public:
  /// `serving`: status text for the service manager while no part is missing. `broker` must be set
  /// before the first call.
  ServiceState(std::string serving, const std::unique_ptr<BrokerSession>& broker)
      : serving_(std::move(serving)), broker_(&broker) {
    health_.set_loading(true);
  }

  /// Sets the reason why a part of the weights cannot be restored; nothing once all parts are
  /// restored.
  void set(const std::optional<Error>& missing);
  /// Handles the broker's call `worker.admission`. Errors: those of its message.
  Result<control::Payload> set_admission(const control::Json& params);
  /// What `/health` reports. The worker counts as loading at first.
  http::Health& health() { return health_; }
  /// Announces a loss again, for a broker that has not received it.
  void repeat() const;
  std::optional<Error> missing() const;

 private:
  void announce(const std::optional<Error>& missing) const;

  std::string serving_;
  const std::unique_ptr<BrokerSession>* broker_;
  http::Health health_;
  mutable std::mutex mutex_;
  std::optional<Error> missing_;
};

}  // namespace leasehold
