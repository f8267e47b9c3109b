/// Whether this worker has its weights, as the world outside the engine learns it: the log, the
/// broker, the service manager, and whoever asks for `missing`.
///
/// Threads: any. Lifetime: what `notify` uses outlives it.
#pragma once

#include <functional>
#include <mutex>
#include <optional>

#include "ipc/control/messages_worker.hpp"

namespace leasehold {

class ServiceState {
 public:
  using Notify = std::function<void(const wire::WorkerWeights&)>;
  explicit ServiceState(Notify notify) : notify_(std::move(notify)) {}

  /// Why a part of the weights cannot be restored; nothing once all are there again.
  void set(const std::optional<Error>& missing);
  /// Notifies of a loss again, for a broker that does not know it.
  void repeat() const;
  std::optional<Error> missing() const;

 private:
  Notify notify_;
  mutable std::mutex mutex_;
  std::optional<Error> missing_;
};

}  // namespace leasehold
