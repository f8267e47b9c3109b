#include "common/process.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace leasehold {

Result<UniqueFd> open_pidfd(pid_t pid) {
  const long fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) {
    const Errc code = errno == ESRCH ? Errc::ConnectionLost : Errc::SystemError;
    return fail_errno(code, fmt::format("pidfd_open({})", pid), errno);
  }
  return UniqueFd(static_cast<int>(fd));
}

Result<void> signal_pidfd(const UniqueFd& pidfd, int signal_number) {
  const long rc = ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal_number, nullptr, 0);
  if (rc < 0 && errno != ESRCH) {
    return fail_errno(Errc::SystemError, "pidfd_send_signal", errno);
  }
  return {};
}

bool has_exited(const UniqueFd& pidfd) {
  pollfd entry{pidfd.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // with the old limit everything works, only less of it
}

void forbid_dumping() {
#if !defined(__SANITIZE_ADDRESS__)  // the leak checker traces its own process
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

}  // namespace leasehold
