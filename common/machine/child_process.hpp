/// A child process that cannot outlive its owner. The destructor kills it and its process group. If
/// this process dies first, or the thread that called start() ends, the kernel kills the child
/// only, not its group.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/machine/unique_fd.hpp"

namespace leasehold {

/// A descriptor that the child inherits, numbered from 3 in order (sd_listen_fds(3)).
struct InheritedFd {
  std::string name;
  int fd = -1;  ///< Stays open in the parent.
};

struct ChildConfig {
  std::vector<std::string> argv;  ///< argv[0] is the program's path.
  /// File for the child's stderr, and for its stdout unless `read_output`.
  std::string log_path;
  bool read_output = false;
  std::vector<std::string> environment;  ///< NAME=value, overrides this process's environment.
  /// Announced to the child in LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES.
  std::vector<InheritedFd> inherited_fds;
  /// Share this process's group, so that the child's children end with this process's owner.
  bool share_process_group = false;
  std::optional<uid_t> uid;  ///< Run as this user, without supplementary groups; needs root.
  std::optional<int> nice;   ///< Best effort: lowering the value needs CAP_SYS_NICE.
};

/// Threads: one.
class Child {
 public:
  /// Starts the child in a process group of its own, so that Ctrl-C at the terminal reaches only
  /// the owner; `share_process_group` changes that. Errors: FileNotFound (no such program),
  /// SystemError.
  static Result<Child> start(const ChildConfig& config);

  Child(Child&&) noexcept = default;
  Child& operator=(Child&&) = delete;
  ~Child();  ///< Kills (SIGKILL) and reaps the child unless it was reaped before.

  pid_t pid() const { return pid_; }
  const UniqueFd& pidfd() const { return pidfd_; }
  /// Non-blocking; empty without `read_output`.
  const UniqueFd& output() const { return output_; }

  Result<void> signal(int signal_number);

  /// The exit code, or 128 + signal; nothing while the child runs. Reaps it and ends its group.
  std::optional<int> status();

 private:
  Child(pid_t pid, UniqueFd pidfd, UniqueFd output)
      : pid_(pid), pidfd_(std::move(pidfd)), output_(std::move(output)) {}
  std::optional<int> reap(int options);

  pid_t pid_;
  UniqueFd pidfd_;  ///< Empty after a move.
  UniqueFd output_;
  std::optional<int> status_;
};

}  // namespace leasehold
