/// A place that is filled with one process after another.
#pragma once

#include <optional>
#include <string>

#include "common/child_process.hpp"

namespace leasehold::soak {

/// Threads: one.
class ProcessSlot {
 public:
  /// Not while it is filled, nor `fill`. Errors: those of Child::start.
  Result<void> start(const ChildConfig& config);
  void fill(Child child);

  /// Until the end of the process was taken, so that none is lost.
  bool filled() const { return child_.has_value(); }
  bool runs();  ///< At this moment; stopped ones do.
  bool stands() const { return stands_for_ > 0; }
  /// How the last one ended, told once; nothing while it runs.
  std::optional<int> take_end();
  /// This very process was killed by `kill`.
  bool was_killed() const { return was_killed_; }

  void kill();
  void stop(std::uint64_t for_deeds);
  void go_on();
  /// One more deed was done: counts down, and lets it go on when its time is over.
  void count_deed();

  const UniqueFd& output() const { return child_->output(); }
  const UniqueFd& pidfd() const { return child_->pidfd(); }
  pid_t pid() const { return child_->pid(); }

 private:
  std::optional<Child> child_;
  std::uint64_t stands_for_ = 0;
  bool was_killed_ = false;
};

}  // namespace leasehold::soak
