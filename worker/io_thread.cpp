#include "worker/io_thread.hpp"

#include <boost/asio/post.hpp>
#include <future>

#include "common/process.hpp"

namespace leasehold {

void IoThread::start(const char* name) {
  thread_ = std::thread([this, name] {
    set_thread_name(name);
    request_short_time_slice();
    io_.run();
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
