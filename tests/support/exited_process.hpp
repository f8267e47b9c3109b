/// A real ProcessExit, for tests of what follows from it.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "broker/supervise/exit_observer.hpp"
#include "common/machine/process.hpp"

namespace leasehold::testing {

/// The proof comes from a child that has exited. It is not reaped, so its pidfd stays readable.
inline ProcessExit exit_of(AttachmentId worker) {
  static const UniqueFd pidfd = [] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    UniqueFd fd = std::move(open_pidfd(child)).value();
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
    return fd;
  }();
  return ExitObserver::observe(worker, pidfd).value();
}

}  // namespace leasehold::testing
