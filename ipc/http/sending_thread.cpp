#include "ipc/http/sending_thread.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "common/machine/process.hpp"
#include "common/machine/start_thread.hpp"

namespace leasehold::http {

Result<void> SendingThread::start(const char* name, boost::asio::awaitable<void> serve,
                                  std::function<void(const std::exception_ptr&)> on_failure) {
  boost::asio::co_spawn(
      io_, std::move(serve),
      [this, on_failure = std::move(on_failure)](const std::exception_ptr& failed) {
        if (failed) on_failure(failed);
        served_.set_value();
      });
  auto body = [this, name] {
    set_thread_name(name);
    use_batch_scheduling();
    io_.run();
  };
  thread_ = TRY(start_thread(std::string("the thread ") + name, std::move(body)));
  return {};
}

bool SendingThread::stop(std::function<void()> end, std::chrono::milliseconds timeout) {
  if (!thread_.joinable()) return false;
  boost::asio::post(io_, std::move(end));
  (void)served_.get_future().wait_for(timeout);
  io_.stop();
  thread_.join();
  return true;
}

}  // namespace leasehold::http
