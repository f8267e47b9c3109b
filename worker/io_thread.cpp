#include "worker/io_thread.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <future>
#include <new>

#include "common/process.hpp"

namespace leasehold {

namespace {

/// A handler that finds no memory ends with what it served, and the others go on.
void run_handlers(boost::asio::io_context& io) {
  for (bool is_stopped = false; !is_stopped;) {
    try {
      io.run();
      is_stopped = true;
    } catch (const std::bad_alloc&) {
      spdlog::error("a handler found no memory and ended");
    }
  }
}

}  // namespace

void IoThread::start(const char* name) {
  thread_ = std::thread([this, name] {
    set_thread_name(name);
    request_short_time_slice();
    run_handlers(io_);
  });
}

Result<void> IoThread::run(const std::function<Result<void>()>& work) {
  std::promise<Result<void>> promise;
  boost::asio::post(io_, [&] { promise.set_value(work()); });
  return promise.get_future().get();
}

void IoThread::stop() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace leasehold
