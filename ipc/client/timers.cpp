#include "ipc/client/timers.hpp"

#include <boost/asio/steady_timer.hpp>

namespace leasehold::client {
namespace {

struct AsioTimer final : TimerHandle {
  explicit AsioTimer(boost::asio::io_context& io) : timer(io) {}
  boost::asio::steady_timer timer;
  // The completion handler may already be queued when the handle is destroyed.
  std::shared_ptr<bool> wanted = std::make_shared<bool>(true);
  ~AsioTimer() override { *wanted = false; }
};

}  // namespace

Timer AsioTimers::after(Duration delay, std::move_only_function<void()> action) {
  auto handle = std::make_unique<AsioTimer>(io_);
  handle->timer.expires_after(delay);
  handle->timer.async_wait([wanted = handle->wanted, action = std::move(action)](
                               const boost::system::error_code& error) mutable {
    if (!error && *wanted) action();
  });
  return handle;
}

}  // namespace leasehold::client
