#include "tests/checks/runner/process_slot.hpp"

#include <signal.h>

#include "common/expects.hpp"

namespace leasehold::runner {

void ProcessSlot::adopt(Child child) {
  expects(!child_, "the exit status of the last process was taken");
  child_.emplace(std::move(child));
  stop_actions_ = 0;
  was_killed_ = false;
}

bool ProcessSlot::is_running() {
  return child_ && !child_->status();
}

std::optional<int> ProcessSlot::take_exit_status() {
  if (!child_) return std::nullopt;
  const std::optional<int> status = child_->status();
  if (status) child_.reset();
  return status;
}

void ProcessSlot::kill() {
  was_killed_ = true;
  stop_actions_ = 0;
  (void)child_->signal(SIGKILL);
}

void ProcessSlot::count_poll() {
  if (polls_to_kill_ == 0 || was_killed_ || !is_running()) return;
  if (--polls_to_kill_ == 0) kill();
}

void ProcessSlot::stop(std::uint64_t for_actions) {
  stop_actions_ = for_actions;
  (void)child_->signal(SIGSTOP);
}

void ProcessSlot::resume() {
  if (child_) (void)child_->signal(SIGCONT);
  stop_actions_ = 0;
}

void ProcessSlot::count_action() {
  if (stop_actions_ == 0) return;
  --stop_actions_;
  if (stop_actions_ == 0) resume();
}

}  // namespace leasehold::runner
