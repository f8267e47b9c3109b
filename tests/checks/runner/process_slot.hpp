/// Runs one process after another, and stops and kills them.
#pragma once

#include <optional>

#include "common/machine/child_process.hpp"

namespace leasehold::runner {

/// Threads: one.
class ProcessSlot {
 public:
  /// Precondition: the slot has no process, so that no exit status is lost.
  void adopt(Child child);

  /// True from `adopt` until the exit status was taken.
  bool has_process() const { return child_.has_value(); }
  bool is_running();  ///< Also true for a stopped process.
  bool is_stopped() const { return stop_actions_ > 0; }
  /// The exit status of the last process, returned once; nothing while it runs.
  std::optional<int> take_exit_status();
  /// True if `kill` killed the current or last process.
  bool was_killed() const { return was_killed_; }

  void kill();
  /// Kills the running process, or the next one, in the `polls`-th call of `count_poll` while it
  /// runs.
  void kill_after(std::uint64_t polls) { polls_to_kill_ = polls; }
  void count_poll();
  /// Sends SIGSTOP, and resumes the process when `count_action` was called this many times.
  void stop(std::uint64_t for_actions);
  void resume();
  /// Cancels a `kill_after`.
  void spare() { polls_to_kill_ = 0; }
  void count_action();

  const UniqueFd& output() const { return child_->output(); }
  const UniqueFd& pidfd() const { return child_->pidfd(); }
  pid_t pid() const { return child_->pid(); }

 private:
  std::optional<Child> child_;
  std::uint64_t stop_actions_ = 0;
  std::uint64_t polls_to_kill_ = 0;
  bool was_killed_ = false;
};

}  // namespace leasehold::runner
