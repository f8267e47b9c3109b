/// Whether a worker can serve requests, for `/health`. The program says what holds.
///
/// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "common/result.hpp"

namespace leasehold::http {

/// What keeps a worker from serving, besides missing weights.
enum class Unready : std::uint8_t {
  Loading,             ///< It is not announced to the broker yet.
  BrokerDisconnected,  ///< No new lease can be had.
};

class Health {
 public:
  void set(Unready what, bool holds) {
    const auto bit = static_cast<std::uint8_t>(1u << static_cast<unsigned>(what));
    holds ? held_.fetch_or(bit) : held_.fetch_and(static_cast<std::uint8_t>(~bit));
  }

  /// Why a part of the weights cannot be restored; nothing once all are there.
  void set_weights_missing(const std::optional<Error>& why) {
    const std::scoped_lock lock(mutex_);
    weights_missing_ = why;
  }

  /// Nothing while the worker can serve. Several reasons may hold; the first of them is told.
  std::optional<Error> why_not() const {
    const auto holds = [held = held_.load()](Unready what) {
      return (held >> static_cast<unsigned>(what) & 1u) != 0;
    };
    if (holds(Unready::Loading))
      return Error{Errc::NoModelLoaded, "this worker does not serve yet; try again in a moment"};
    if (auto missing = weights_missing()) return missing;
    if (holds(Unready::BrokerDisconnected)) {
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

  std::atomic<std::uint8_t> held_ = 0;
  mutable std::mutex mutex_;
  std::optional<Error> weights_missing_;
};

}  // namespace leasehold::http
