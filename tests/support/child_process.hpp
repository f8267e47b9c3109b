/// Children of a test: waits for programs, and runs work in a forked child, for tests of aborts,
/// signals and the environment.
///
/// Threads: fork only while no other thread of the test runs.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "common/machine/child_process.hpp"
#include "common/machine/unique_fd.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::testing {

/// How a child ended. Exactly one of `exit_code`, `killed_by`, `stopped_by` is set.
struct ChildExit {
  int exit_code = -1;
  int killed_by = 0;
  int stopped_by = 0;        ///< It stopped itself; afterwards it is killed and reaped.
  std::string error_output;  ///< Its output on stderr.
};

/// Waits until the program ends. Returns its exit code, or 128 + signal; -1 when it does not end
/// within a minute.
inline int exit_status_of(Child& child) {
  std::optional<int> status;
  eventually([&] { return (status = child.status()).has_value(); });
  return status.value_or(-1);
}

inline std::string read_all(const UniqueFd& fd) {
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t n = 0; (n = ::read(fd.get(), part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(n));
  return text;
}

/// Runs `work` in a child; the exit code is the result of `work` (an int).
template <class Work>
ChildExit run_in_child(Work&& work) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return {};
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    // Catch's handlers would report the expected death as a failed test.
    for (const int number : {SIGABRT, SIGSEGV}) std::signal(number, SIG_DFL);
    ::dup2(write_end.get(), STDERR_FILENO);
    ::_exit(work());
  }
  write_end.reset();
  ChildExit end;
  int status = 0;
  ::waitpid(pid, &status, WUNTRACED);
  if (WIFSTOPPED(status)) {
    end.stopped_by = WSTOPSIG(status);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, &status, 0);
  } else if (WIFSIGNALED(status)) {
    end.killed_by = WTERMSIG(status);
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  end.error_output = read_all(read_end);
  return end;
}

}  // namespace leasehold::testing
