/// Announces whether this worker has its weights to the log, the broker, the service manager and
/// `/health`.
///
/// Threads: any. Lifetime: the broker's session outlives the object.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "worker/lease/broker_session.hpp"

namespace leasehold {

class ServiceState {
 public:
  /// `serving`: status text for the service manager while no part is missing. `broker` must be set
  /// before the first call.
  ServiceState(std::string serving, const std::unique_ptr<BrokerSession>& broker)
      : serving_(std::move(serving)), broker_(&broker) {}

  /// Sets the reason why a part of the weights cannot be restored; nothing once all parts are
  /// restored.
  void set(const std::optional<Error>& missing);
  /// Announces a loss again, for a broker that has not received it.
  void repeat() const;
  std::optional<Error> missing() const;

 private:
  void announce(const std::optional<Error>& missing) const;

  std::string serving_;
  const std::unique_ptr<BrokerSession>* broker_;
  mutable std::mutex mutex_;
  std::optional<Error> missing_;
};

}  // namespace leasehold
