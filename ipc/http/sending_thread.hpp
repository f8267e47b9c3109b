/// A thread that runs one coroutine until it ends: for senders to a server that may be slow or
/// away.
///
/// Lifetime: the owner calls `stop` before it destroys what the coroutine uses. Threads: one thread
/// constructs the object and calls its functions; the coroutine runs on the thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "common/result.hpp"

namespace leasehold::http {

class SendingThread {
 public:
  boost::asio::io_context& io() { return io_; }

  /// Starts the thread, with batch scheduling. `name` has at most 15 bytes. An
  /// exception of the coroutine is passed to `on_failure` on the thread. Call it once. Errors:
  /// SystemError when the system refuses the thread.
  Result<void> start(const char* name, boost::asio::awaitable<void> serve,
                     std::function<void(const std::exception_ptr&)> on_failure);

  /// Calls `end` on the thread, which makes the coroutine end, waits at most `timeout` for that,
  /// and joins the thread. Returns false, and does nothing, if the thread does not run.
  bool stop(std::function<void()> end, std::chrono::milliseconds timeout);

 private:
  boost::asio::io_context io_;
  std::promise<void> served_;
  std::thread thread_;
};

}  // namespace leasehold::http
