/// Whether this worker has its weights, for everything outside the engine: the log, the broker, the
/// service manager and `/health`.
///
/// Threads: any. Lifetime: the broker's session outlives it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "worker/lease/broker_session.hpp"

namespace leasehold {

class ServiceState {
 public:
  /// `serving`: what the service manager shows while the weights are there. `broker` is set before
  /// the first call.
  ServiceState(std::string serving, const std::unique_ptr<BrokerSession>& broker)
      : serving_(std::move(serving)), broker_(&broker) {}

  /// Why a part of the weights cannot be restored; nothing once all are there again.
  void set(const std::optional<Error>& missing);
  /// Announces a loss again, for a broker that does not know it.
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
