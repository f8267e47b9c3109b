/// A place that is has_process with one process after another.
#pragma once

#include <optional>
#include <string>

#include "common/child_process.hpp"

namespace leasehold::soak {

/// Threads: one.
class ProcessSlot {
 public:
  /// Not while it is has_process, nor `adopt`. Errors: those of Child::start.
  Result<void> start(const ChildConfig& config);
  void adopt(Child child);

  /// Until the end of the process was taken, so that none is lost.
  bool has_process() const { return child_.has_value(); }
  bool is_running();  ///< At this moment; stopped ones do.
  bool is_stopped() const { return stop_actions_ > 0; }
  /// How the last one ended, reported once; nothing while it is_running.
  std::optional<int> take_exit_status();
  /// This very process was killed by `kill`.
  bool was_killed() const { return was_killed_; }

  void kill();
  void stop(std::uint64_t for_actions);
  void resume();
  /// One more action was done: counts down, and lets it go on when its time is over.
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
