/// Runs one process after another, and stops and kills them.
#pragma once

#include <optional>

#include "common/child_process.hpp"

namespace leasehold::soak {

/// Threads: one.
class ProcessSlot {
 public:
  /// Precondition: no process, so no exit status is lost.
  void adopt(Child child);

  /// True until the exit status of the process is taken.
  bool has_process() const { return child_.has_value(); }
  bool is_running();  ///< Also true for a stopped process.
  bool is_stopped() const { return stop_actions_ > 0; }
  /// The exit status of the last process, returned once; nothing while it runs.
  std::optional<int> take_exit_status();
  /// The current or last process was killed by `kill`.
  bool was_killed() const { return was_killed_; }

  void kill();
  /// SIGSTOP, until `count_action` was called this many times.
  void stop(std::uint64_t for_actions);
  void resume();
  void count_action();

  const UniqueFd& output() const { return child_->output(); }
  const UniqueFd& pidfd() const { return child_->pidfd(); }
  pid_t pid() const { return child_->pid(); }

 private:
  std::optional<Child> child_;
  std::uint64_t stop_actions_ = 0;
  bool was_killed_ = false;
};

}  // namespace leasehold::soak
