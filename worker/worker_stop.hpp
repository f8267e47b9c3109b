/// Ends a worker that serves, once its requests have ended.
///
// clang-format off
///   drain:           admit nothing new ─► wait for requests, HTTP answers, usage records ─► stop the loop
///   stop_when_idle:  wait for requests ─► stop the loop
// clang-format on
///
/// An HTTP answer between two leases waits for the broker. While that is disconnected, and no other
/// answer is left, the drain ends after one second. A drain writes an answer that a client reads
/// slowly to its end.
///
/// What is left when the drain timeout ends gets Draining when the loop has stopped.
///
/// Threads: the I/O thread. Lifetime: what the functions in Dependencies use outlives it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

namespace leasehold {

class WorkerStop {
 public:
  using Clock = std::chrono::steady_clock;
  struct Dependencies {
    boost::asio::io_context* io = nullptr;
    std::function<void()> stop_loop;
    /// Refuses new requests; then calls back, on any thread, once every request that was admitted
    /// has reached the loop.
    std::function<void(std::function<void()> done)> refuse_requests;
    /// Calls back, on any thread, with the requests that the engine runs or queues.
    std::function<void(std::function<void(std::size_t)> done)> count_requests;
    std::function<bool()> is_answering;            ///< An HTTP request is not answered.
    std::function<bool()> is_writing;              ///< One of them does not wait for a lease.
    std::function<bool()> is_broker_disconnected;  ///< Lost, or not resumed yet.
    std::function<void()> notify_broker;           ///< That this worker drains.
    /// Calls back once, when no connected broker is about to confirm usage records.
    std::function<void(std::function<void()> done)> when_usage_reported;
    std::chrono::milliseconds poll_interval{20};
    std::function<Clock::time_point()> now = Clock::now;
  };
  explicit WorkerStop(Dependencies deps) : deps_(std::move(deps)), timer_(*deps_.io) {}

  /// Refuses new requests, then stops the loop once the others have ended, at the latest after
  /// `timeout`. A second call stops it at once, and so does a timeout of 0.
  void drain(std::chrono::milliseconds timeout);
  /// Notifies the broker that a draining worker drains, after a reconnect too. Waits for nothing.
  void notify_broker();
  bool is_draining() const { return deadline_.has_value(); }

  /// Stops the loop once the engine runs and queues no request. Has no timeout of its own: for a
  /// worker whose broker is lost, its leases run out.
  void stop_when_idle();

  /// How long a drain without a broker waits for answers that only wait for a lease.
  static constexpr std::chrono::seconds kLeaseWait{1};

 private:
  void poll();
  void check(std::size_t requests, bool has_all);
  bool awaits_answers();
  void stop_when_reported();
  void report(std::size_t requests);

  Dependencies deps_;
  boost::asio::steady_timer timer_;
  std::optional<Clock::time_point> deadline_;
  std::optional<std::size_t> reported_;                   // requests
  std::optional<Clock::time_point> awaits_broker_since_;  // only answers that wait for a lease
  bool is_polling_ = false;
  bool are_all_in_loop_ = false;  // the requests that were admitted before the drain
};

}  // namespace leasehold
