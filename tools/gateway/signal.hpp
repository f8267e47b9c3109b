/// Lets one coroutine wait until another one of the same thread has changed something.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>

#include "ipc/http/http_await.hpp"

namespace leasehold::gateway {

/// A wait may also end without a change: check the condition again. One coroutine waits at a time.
class Signal {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Signal(boost::asio::io_context& io) : timer_(io) {}

  /// Wakes the coroutine that waits, if one does.
  void notify() { timer_.cancel(); }
  boost::asio::awaitable<void> wait_until(Clock::time_point time) {
    timer_.expires_at(time);
    co_await timer_.async_wait(http::kAwait);
  }
  boost::asio::awaitable<void> wait() { return wait_until(Clock::time_point::max()); }

 private:
  boost::asio::steady_timer timer_;
};

}  // namespace leasehold::gateway
