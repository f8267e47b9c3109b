#include "broker/server/wall_clock_watch.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <ctime>
#include <limits>

#include "common/unix_time.hpp"

namespace leasehold {
namespace {

using Watch = boost::asio::posix::stream_descriptor;

/// Arms the timer for a time that does not come: it ends only when the clock is set.
void arm(int timer) {
  itimerspec never{};
  never.it_value.tv_sec = std::numeric_limits<time_t>::max();
  (void)::timerfd_settime(timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, nullptr);
}

}  // namespace

Result<std::unique_ptr<WallClockWatch>> WallClockWatch::create(boost::asio::io_context& io,
                                                               OnSet on_set) {
  const int fd = ::timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (fd < 0) return fail_errno(Errc::SystemError, "timerfd_create", errno);
  return std::unique_ptr<WallClockWatch>(new WallClockWatch(Watch(io, fd), std::move(on_set)));
}

/// The timer is armed before the clock is read, so no change is lost in between.
void WallClockWatch::start() {
  arm(timer_.native_handle());
  wait();
  on_set_(unix_minus_boottime());
}

void WallClockWatch::wait() {
  timer_.async_wait(Watch::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;
    std::uint64_t expirations = 0;
    (void)!::read(timer_.native_handle(), &expirations, sizeof expirations);  // ECANCELED
    arm(timer_.native_handle());
    wait();
    on_set_(unix_minus_boottime());
  });
}

}  // namespace leasehold
