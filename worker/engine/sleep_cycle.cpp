#include "worker/engine/sleep_cycle.hpp"

#include <utility>

namespace leasehold {

bool SleepCycle::fall_asleep() {
  if (is_asleep()) return false;
  if (!std::exchange(asked_to_sleep_, false)) wants_to_wake_ = false;
  phase_ = SleepPhase::Asleep;
  idle_since_.reset();
  return true;
}

bool SleepCycle::begin_waking() {
  asked_to_wake_ = false;
  wants_to_wake_ = false;
  if (!is_asleep()) return false;
  phase_ = SleepPhase::Waking;
  return true;
}

bool SleepCycle::end_waking() {
  if (phase_ != SleepPhase::Waking) return false;
  phase_ = SleepPhase::Awake;
  return true;
}

bool SleepCycle::take_wake() {
  if (!is_asleep() || !wants_to_wake_) return false;
  return !std::exchange(asked_to_wake_, true);
}

void SleepCycle::on_wake_refused(bool still_wanted) {
  asked_to_wake_ = false;
  wants_to_wake_ = still_wanted;
}

bool SleepCycle::take_idle(bool has_work, TimePoint now) {
  if (has_work || phase_ != SleepPhase::Awake) {
    idle_since_.reset();
    return false;
  }
  if (!idle_since_) idle_since_ = now;
  const auto until = idle_until();
  return until && *until <= now && ask_to_sleep();
}

bool SleepCycle::take_back_to_sleep() {
  return phase_ == SleepPhase::Waking && ask_to_sleep();
}

bool SleepCycle::ask_to_sleep() {
  if (std::exchange(asked_to_sleep_, true)) return false;
  wants_to_wake_ = false;
  return true;
}

void SleepCycle::on_sleep_refused(TimePoint now) {
  asked_to_sleep_ = false;
  if (idle_since_) idle_since_ = now;
}

std::optional<TimePoint> SleepCycle::idle_until() const {
  if (idle_limit_ == Duration::zero() || !idle_since_ || asked_to_sleep_) return std::nullopt;
  return *idle_since_ + idle_limit_;
}

}  // namespace leasehold
