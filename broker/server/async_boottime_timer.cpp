#include "broker/server/async_boottime_timer.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>

#include "common/machine/boottime_timer.hpp"

namespace leasehold {

using Watch = boost::asio::posix::stream_descriptor;

Result<std::unique_ptr<AsyncBoottimeTimer>> AsyncBoottimeTimer::create(
    boost::asio::io_context& io, std::function<void()> on_due) {
  const int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (fd < 0) return fail_errno(Errc::SystemError, "timerfd_create", errno);
  std::unique_ptr<AsyncBoottimeTimer> timer(
      new AsyncBoottimeTimer(Watch(io, fd), std::move(on_due)));
  timer->wait();
  return timer;
}

void AsyncBoottimeTimer::arm(std::optional<TimePoint> deadline) {
  if (deadline == armed_) return;
  armed_ = deadline;
  arm_boottime_timerfd(timer_.native_handle(), deadline);
}

void AsyncBoottimeTimer::wait() {
  timer_.async_wait(Watch::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;
    std::uint64_t expirations = 0;
    (void)!::read(timer_.native_handle(), &expirations, sizeof expirations);
    armed_.reset();
    on_due_();
    wait();
  });
}

}  // namespace leasehold
