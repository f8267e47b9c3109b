/// Whether a worker can serve requests, for `/health`. The program says what holds.
///
/// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "common/result.hpp"

namespace leasehold::http {

/// What keeps a worker from serving. Several may hold; the first of them is told.
enum class Unready : std::uint8_t {
  Loading,             ///< It is not announced to the broker yet.
  WeightsLost,         ///< Its weights are gone, or being restored.
  BrokerDisconnected,  ///< No new lease can be had.
};

class Health {
 public:
  void set(Unready what, bool holds) {
    const auto bit = static_cast<std::uint8_t>(1u << static_cast<unsigned>(what));
    holds ? held_.fetch_or(bit) : held_.fetch_and(static_cast<std::uint8_t>(~bit));
  }

  /// Nothing while the worker can serve.
  std::optional<Error> why_not() const {
    const auto holds = [held = held_.load()](Unready what) {
      return (held >> static_cast<unsigned>(what) & 1u) != 0;
    };
    if (holds(Unready::Loading))
      return Error{Errc::NoModelLoaded, "this worker does not serve yet; try again in a moment"};
    if (holds(Unready::WeightsLost)) {
      return Error{Errc::WeightsLoading,
                   "this worker has no weights; try again in a moment, or use another worker"};
    }
    if (holds(Unready::BrokerDisconnected)) {
      return Error{Errc::BrokerLost,
                   "this worker has lost its broker; try again in a moment, or use another worker"};
    }
    return std::nullopt;
  }

 private:
  std::atomic<std::uint8_t> held_ = 0;
};

}  // namespace leasehold::http
