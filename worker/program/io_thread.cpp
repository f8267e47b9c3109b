#include "worker/program/io_thread.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <exception>
#include <future>
#include <new>

#include "common/machine/process.hpp"
#include "common/machine/start_thread.hpp"

namespace leasehold {

namespace {

/// Runs the handlers. A handler whose allocation fails ends, and the others continue.
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

Result<void> IoThread::start(const char* name) {
  thread_ = TRY(start_thread(fmt::format("the thread \"{}\"", name), [this, name] {
    set_thread_name(name);
    request_short_time_slice();
    run_handlers(io_);
  }));
  return {};
}

Result<void> IoThread::run(const std::function<Result<void>()>& work) {
  std::promise<Result<void>> promise;
  boost::asio::post(io_, [&] {
    try {
      promise.set_value(work());
    } catch (...) {  // rethrown on the caller's thread, which can end the program in order
      promise.set_exception(std::current_exception());
    }
  });
  return promise.get_future().get();
}

void IoThread::stop() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace leasehold
