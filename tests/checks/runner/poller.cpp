#include "tests/checks/runner/poller.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <cerrno>

namespace leasehold::runner {

Result<Poller> Poller::create() {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGINT);
  sigaddset(&wanted, SIGTERM);
  sigprocmask(SIG_BLOCK, &wanted, nullptr);
  const int fd = ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return fail_errno(Errc::SystemError, "signalfd", errno);
  return Poller(UniqueFd(fd));
}

Result<std::vector<int>> Poller::wait(std::span<const int> descriptors, Duration at_most) const {
  std::vector<pollfd> entries;
  for (const int fd : descriptors) entries.push_back({fd, POLLIN, 0});
  entries.push_back({signals_.get(), POLLIN, 0});
  const auto timeout_ms = static_cast<int>(at_most / std::chrono::milliseconds(1));
  if (::poll(entries.data(), entries.size(), timeout_ms) < 0 && errno != EINTR) {
    return fail_errno(Errc::SystemError, "poll", errno);
  }
  interrupted_ = interrupted_ || entries.back().revents != 0;
  if (interrupted_) return fail(Errc::TimedOut, "interrupted");
  entries.pop_back();
  std::vector<int> ready;
  for (const pollfd& entry : entries) {
    if (entry.revents != 0) ready.push_back(entry.fd);
  }
  return ready;
}

}  // namespace leasehold::runner
