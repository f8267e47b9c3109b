/// Whether a worker can serve requests, as `/health` reports it. The program sets the state.
///
/// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "common/result.hpp"

namespace leasehold::http {

class Health {
 public:
  /// True until the worker is announced to the broker.
  void set_loading(bool is_loading) { is_loading_ = is_loading; }
  /// True while a part of the weights cannot be restored. The log says which part, and why: clients
  /// without a key read `/health`, and the reason names files.
  void set_weights_missing(bool are_missing) { are_weights_missing_ = are_missing; }
  /// True while no new lease can be acquired because there is no broker.
  void set_broker_disconnected(bool is_disconnected) { is_broker_disconnected_ = is_disconnected; }
  /// False while an operator drains or replaces the worker.
  void set_admitting(bool is_admitting) { is_admitting_ = is_admitting; }

  /// True while the worker has no weights, but restores them for the next request.
  void set_asleep(bool is_asleep) { is_asleep_ = is_asleep; }
  bool is_asleep() const { return is_asleep_; }

  /// The membership of this host in its cell; 0: none. Gateways refuse answers of another
  /// membership than etcd has.
  void set_incarnation(std::uint64_t incarnation) { incarnation_ = incarnation; }
  std::uint64_t incarnation() const { return incarnation_; }

  /// The first reason why the worker cannot serve, or nothing if it can.
  std::optional<Error> why_not() const {
    if (is_loading_)
      return Error{Errc::NoModelLoaded, "this worker does not serve yet; try again in a moment"};
    if (are_weights_missing_) {
      return Error{Errc::MissingWeight,
                   "this worker has lost a part of its weights, see its log; use another worker"};
    }
    if (is_broker_disconnected_) {
      return Error{Errc::BrokerLost,
                   "this worker has lost its broker; try again in a moment, or use another worker"};
    }
    if (!is_admitting_) {
      return Error{Errc::Draining,
                   "this worker takes no new requests until an operator undrains it; use another "
                   "worker"};
    }
    return std::nullopt;
  }

 private:
  std::atomic<bool> is_loading_ = false;
  std::atomic<bool> are_weights_missing_ = false;
  std::atomic<bool> is_broker_disconnected_ = false;
  std::atomic<bool> is_admitting_ = true;
  std::atomic<bool> is_asleep_ = false;
  std::atomic<std::uint64_t> incarnation_ = 0;
};

}  // namespace leasehold::http
