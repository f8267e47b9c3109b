#include "broker/server/boot_timer.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cerrno>

namespace leasehold {

using Watch = boost::asio::posix::stream_descriptor;

Result<std::unique_ptr<BootTimer>> BootTimer::create(boost::asio::io_context& io,
                                                     std::function<void()> on_due) {
  const int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (fd < 0) return fail_errno(Errc::SystemError, "timerfd_create", errno);
  std::unique_ptr<BootTimer> timer(new BootTimer(Watch(io, fd), std::move(on_due)));
  timer->wait();
  return timer;
}

void BootTimer::arm(std::optional<TimePoint> deadline) {
  if (deadline == armed_) return;
  armed_ = deadline;
  constexpr std::int64_t kSecond = 1'000'000'000;
  itimerspec when{};
  if (deadline) {
    const std::int64_t at = std::max<std::int64_t>(deadline->boottime_ns, 1);  // 0 would disarm
    when.it_value = {.tv_sec = at / kSecond, .tv_nsec = at % kSecond};
  }
  ::timerfd_settime(timer_.native_handle(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void BootTimer::wait() {
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
