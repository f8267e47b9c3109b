#include "tools/checks/soak/process_slot.hpp"

#include <signal.h>

#include "common/expects.hpp"

namespace leasehold::soak {

Result<void> ProcessSlot::start(const ChildConfig& config) {
  fill(TRY(Child::start(config)));
  return {};
}

void ProcessSlot::fill(Child child) {
  expects(!child_, "the end of the last process was taken");
  child_.emplace(std::move(child));
  stands_for_ = 0;
  was_killed_ = false;
}

bool ProcessSlot::runs() {
  return child_ && !child_->status();
}

std::optional<int> ProcessSlot::take_end() {
  if (!child_) return std::nullopt;
  const std::optional<int> status = child_->status();
  if (status) child_.reset();
  return status;
}

void ProcessSlot::kill() {
  was_killed_ = true;
  stands_for_ = 0;
  (void)child_->signal(SIGKILL);
}

void ProcessSlot::stop(std::uint64_t for_deeds) {
  stands_for_ = for_deeds;
  (void)child_->signal(SIGSTOP);
}

void ProcessSlot::go_on() {
  if (child_) (void)child_->signal(SIGCONT);
  stands_for_ = 0;
}

void ProcessSlot::count_deed() {
  if (stands_for_ == 0) return;
  --stands_for_;
  if (stands_for_ == 0) go_on();
}

}  // namespace leasehold::soak
