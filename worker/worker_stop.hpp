/// Ends a worker that serves, once its requests have ended.
///
///   drain:      admit nothing new ─► wait for requests, HTTP answers, usage records ─► stop the
///   loop when_idle:  wait for requests ─► stop the loop
///
/// What is left when the drain timeout ends gets Draining when the loop has stopped.
///
/// Threads: the I/O thread. Lifetime: everything in Dependencies outlives it.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>

#include "worker/http_part.hpp"
#include "worker/lease/broker_link.hpp"
#include "worker/serving.hpp"

namespace leasehold {

class WorkerStop {
 public:
  struct Dependencies {
    boost::asio::io_context* io = nullptr;
    EngineLoop* loop = nullptr;
    Serving* serving = nullptr;
    BrokerLink* broker = nullptr;
    HttpPart* http = nullptr;  ///< May be null.
  };
  explicit WorkerStop(const Dependencies& deps) : deps_(deps), timer_(*deps.io) {}

  /// Refuses new requests, then stops the loop once the others have ended, at the latest after
  /// `timeout`. A second call stops it at once, and so does a timeout of 0.
  void drain(std::chrono::milliseconds timeout);
  /// Notifies the broker that a draining worker drains, after a reconnect too. Waits for nothing.
  void notify_broker();
  bool is_draining() const { return deadline_.has_value(); }

  /// For a worker whose broker is lost: its leases run out.
  void when_idle();

 private:
  using Clock = std::chrono::steady_clock;
  void poll();
  void stop_when_reported();
  void check(std::size_t requests);
  void report(std::size_t requests);

  Dependencies deps_;
  boost::asio::steady_timer timer_;
  std::optional<Clock::time_point> deadline_;
  std::optional<std::size_t> reported_;  // requests
  bool is_polling_ = false;
};

}  // namespace leasehold
