#include "common/machine/boottime_timer.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace leasehold {

void arm_boottime_timerfd(int timer, std::optional<TimePoint> until) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  itimerspec when{};
  if (until) {
    const std::int64_t at = std::max<std::int64_t>(until->boottime_ns, 1);  // 0 would disarm
    when.it_value = {.tv_sec = at / kSecond, .tv_nsec = at % kSecond};
  }
  ::timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, nullptr);
}

Result<BoottimeTimer> BoottimeTimer::create() {
  UniqueFd timer(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer) return fail_errno(Errc::SystemError, "timerfd_create", errno);
  UniqueFd wakeup_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wakeup_fd) return fail_errno(Errc::SystemError, "eventfd", errno);
  return BoottimeTimer(std::move(timer), std::move(wakeup_fd));
}

bool BoottimeTimer::wait_until(TimePoint until) {
  arm_boottime_timerfd(timer_.get(), until);
  pollfd sources[] = {{.fd = timer_.get(), .events = POLLIN, .revents = 0},
                      {.fd = wakeup_fd_.get(), .events = POLLIN, .revents = 0}};
  ::poll(sources, std::size(sources), -1);
  std::uint64_t rings = 0;
  return ::read(wakeup_fd_.get(), &rings, sizeof rings) >
         0;  // the number of wake-ups does not matter
}

void BoottimeTimer::wake() {
  const std::uint64_t once = 1;
  (void)!::write(wakeup_fd_.get(), &once, sizeof once);
}

}  // namespace leasehold
