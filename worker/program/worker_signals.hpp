/// The signals of a worker process.
///
/// Until their handlers are set, SIGTERM and SIGINT end the process at once with exit code 128 +
/// signal, because nothing is served yet, and SIGHUP waits for its handler.
///
/// Threads: the functions and the handlers on the thread of the io_context; construction before
/// that thread starts.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>

namespace leasehold {

class WorkerSignals {
 public:
  explicit WorkerSignals(boost::asio::io_context& io);

  /// From now on SIGTERM and SIGINT call `stop`. Call once.
  void on_stop(std::function<void(int signal)> stop);
  /// From now on SIGHUP calls `reload`, also for a SIGHUP that arrived earlier. Call once.
  void on_reload(std::function<void()> reload);

 private:
  void await_stop();
  void await_reload();

  boost::asio::signal_set stop_signals_;
  boost::asio::signal_set reload_signal_;
  std::function<void(int signal)> stop_;
  std::function<void()> reload_;
};

}  // namespace leasehold
