/// A thread for sockets: an io_context and the thread that runs it.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "common/result.hpp"

namespace leasehold {

/// When an allocation fails in a handler, only that handler ends, and its work is dropped.
///
/// Threads: all functions, except `context`, from the thread that owns the object.
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

  /// Keeps `resource` until the handlers that never ran are destroyed, because they may hold
  /// objects that use it.
  void keep(std::shared_ptr<const void> resource) { kept_.push_back(std::move(resource)); }

 private:
  std::vector<std::shared_ptr<const void>> kept_;  // destroyed after `io_`
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      io_.get_executor()};
  std::thread thread_;
};

}  // namespace leasehold
