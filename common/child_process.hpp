/// A child process that cannot outlive its owner: ended when the object goes, and by the kernel
/// when this process dies. What it began and left in its process group ends with it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.hpp"

namespace leasehold {

/// A descriptor the child finds at its start, numbered from 3 in order (sd_listen_fds(3)).
struct InheritedFd {
  std::string name;
  int fd = -1;  ///< Stays the parent's.
};

struct ChildConfig {
  std::vector<std::string> argv;  ///< argv[0] is the program's path.
  std::string log_path;           ///< Its stderr goes here, and its stdout unless `read_output`.
  bool read_output = false;
  std::vector<std::string> environment;    ///< NAME=value, over what this process has.
  std::vector<InheritedFd> inherited_fds;  ///< With LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES.
  /// What it begins ends with this process' own owner, for a program that is not ours.
  bool share_process_group = false;
};

/// Threads: one.
class Child {
 public:
  /// In a process group of its own unless told, so that Ctrl-C at the terminal reaches the owner
  /// alone. Errors: FileNotFound (no such program), SystemError.
  static Result<Child> start(const ChildConfig& config);

  Child(Child&&) noexcept = default;
  Child& operator=(Child&&) = delete;
  ~Child();  ///< SIGKILL and reap, unless it was reaped.

  pid_t pid() const { return pid_; }
  const UniqueFd& pidfd() const { return pidfd_; }
  const UniqueFd& output() const { return output_; }  ///< Non-blocking; nothing without it.

  Result<void> signal(int signal_number);

  /// How it ended: its exit code, or 128 + signal; nothing while it runs. Reaps, and ends its
  /// group.
  std::optional<int> status();

 private:
  Child(pid_t pid, UniqueFd pidfd, UniqueFd output)
      : pid_(pid), pidfd_(std::move(pidfd)), output_(std::move(output)) {}
  std::optional<int> reap(int options);

  pid_t pid_;
  UniqueFd pidfd_;  ///< Nothing after a move.
  UniqueFd output_;
  std::optional<int> status_;
};

}  // namespace leasehold
