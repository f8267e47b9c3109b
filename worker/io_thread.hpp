/// A thread for sockets: an io_context and the thread that runs it.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <thread>

#include "common/result.hpp"

namespace leasehold {

/// When an allocation fails in a handler, only that handler ends, and its work is dropped.
///
/// Threads: `start`, `run` and `stop` from the thread that owns the object.
class IoThread {
 public:
  ~IoThread() { stop(); }

  boost::asio::io_context& context() { return io_; }

  /// `name` appears in `ps -L`. Errors: those of start_thread.
  Result<void> start(const char* name);
  /// Runs `work` on the thread, waits, and returns its result or rethrows its exception.
  /// Precondition: started.
  Result<void> run(const std::function<Result<void>()>& work);
  /// Ends the thread; handlers that have not run are dropped with the io_context.
  void stop();

 private:
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      io_.get_executor()};
  std::thread thread_;
};

}  // namespace leasehold
