/// Stops a serving worker once its requests have ended.
///
// clang-format off
///   drain:           admit nothing new ─► wait for requests, HTTP answers, usage records ─► stop the loop
///   stop_when_idle:  wait for requests ─► stop the loop
// clang-format on
///
/// An HTTP answer that is between two leases waits for the broker. When the broker is disconnected
/// and only such answers are left, the drain ends after one second. A drain waits for clients that
/// read their answers slowly.
///
/// Requests that remain after the drain timeout end with Draining once the loop has stopped.
///
/// Threads: the I/O thread. Lifetime: everything that the functions in Dependencies use outlives
/// the object.
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
    /// Calls back, on any thread, with the number of requests that the engine runs or queues.
    std::function<void(std::function<void(std::size_t)> done)> count_requests;
    std::function<bool()> is_answering;  ///< True while an HTTP request is not fully answered.
    /// True while one of these requests does not wait for a lease.
    std::function<bool()> is_writing;
    /// True while the connection is lost or not resumed yet.
    std::function<bool()> is_broker_disconnected;
    std::function<void()> notify_broker;  ///< Reports to the broker that this worker drains.
    /// Calls back once, when all usage records are confirmed or no connected broker will confirm
    /// them.
    std::function<void(std::function<void()> done)> when_usage_reported;
    std::chrono::milliseconds poll_interval{20};
    std::function<Clock::time_point()> now = Clock::now;
  };
  explicit WorkerStop(Dependencies deps) : deps_(std::move(deps)), timer_(*deps_.io) {}

  /// Refuses new requests, then stops the loop once the admitted requests have ended, at the latest
  /// after `timeout`. A second call, or a timeout of 0, stops the loop at once.
  void drain(std::chrono::milliseconds timeout);
  /// While draining, notifies the broker of it; also called after a reconnect. Does not wait.
  void notify_broker();
  bool is_draining() const { return deadline_.has_value(); }

  /// Stops the loop once the engine has no running or queued request. Used when the broker is lost;
  /// no timeout is needed, because the leases expire.
  void stop_when_idle();

  /// How long a drain with a disconnected broker waits for answers that only wait for a lease.
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
  std::optional<std::size_t> reported_;  // last reported number of requests
  // since this time every remaining answer waits for a lease
  std::optional<Clock::time_point> awaits_broker_since_;
  bool is_polling_ = false;
  bool are_all_in_loop_ = false;  // all requests admitted before the drain are in the loop
};

}  // namespace leasehold
