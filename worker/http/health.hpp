/// Whether a worker can serve requests, as `/health` reports it. The program sets the state.
///
/// Threads: any.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "common/result.hpp"

namespace leasehold::http {

class Health {
 public:
  /// While `broker_disconnected` is true, no new lease can be acquired. It outlives this object.
  explicit Health(const std::atomic<bool>& broker_disconnected)
      : broker_disconnected_(&broker_disconnected) {}

  /// `is_loading` is true until the worker is announced to the broker.
  void set_loading(bool is_loading) { loading_.store(is_loading); }

  /// `why` says why a part of the weights cannot be restored. It is empty once all are present.
  void set_weights_missing(const std::optional<Error>& why) {
    const std::scoped_lock lock(mutex_);
    weights_missing_ = why;
  }

  /// The first reason why the worker cannot serve, or nothing if it can.
  std::optional<Error> why_not() const {
    if (loading_.load())
      return Error{Errc::NoModelLoaded, "this worker does not serve yet; try again in a moment"};
    if (auto missing = weights_missing()) return missing;
    if (broker_disconnected_->load()) {
      return Error{Errc::BrokerLost,
                   "this worker has lost its broker; try again in a moment, or use another worker"};
    }
    return std::nullopt;
  }

 private:
  std::optional<Error> weights_missing() const {
    const std::scoped_lock lock(mutex_);
    return weights_missing_;
  }

  const std::atomic<bool>* broker_disconnected_;
  std::atomic<bool> loading_ = false;
  mutable std::mutex mutex_;
  std::optional<Error> weights_missing_;
};

}  // namespace leasehold::http
