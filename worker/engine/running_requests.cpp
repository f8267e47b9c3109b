#include "worker/engine/running_requests.hpp"

namespace leasehold {

void RunningRequests::update(const StopSlots& stop_slots) {
  const std::scoped_lock lock(mutex_);
  bool changed = false;
  for (std::uint32_t stop_slot = 0; stop_slot < kMaxStepSequences; ++stop_slot) {
    if (stop_slots_[stop_slot] == stop_slots[stop_slot]) continue;
    stops_.clear(stop_slot);
    stop_slots_[stop_slot] = stop_slots[stop_slot];
    changed = true;
  }
  if (changed && alarm_ != nullptr) alarm_->wake();
}

void RunningRequests::wake_on_change(BoottimeTimer* alarm) {
  const std::scoped_lock lock(mutex_);
  alarm_ = alarm;
}

bool RunningRequests::stop(const RequestId& engine_request_id, LocalStop reason) {
  const std::scoped_lock lock(mutex_);
  for (std::uint32_t stop_slot = 0; stop_slot < kMaxStepSequences; ++stop_slot) {
    if (!stop_slots_[stop_slot] || stop_slots_[stop_slot]->engine_request_id != engine_request_id)
      continue;
    stops_.stop(stop_slot, reason);
    return true;
  }
  return false;
}

void RunningRequests::stop_due(const Due& due) {
  const std::scoped_lock lock(mutex_);
  for (std::uint32_t stop_slot = 0; stop_slot < kMaxStepSequences; ++stop_slot) {
    if (!stop_slots_[stop_slot] || stops_.read(stop_slot) != LocalStop::None) continue;
    const LocalStop reason = due(*stop_slots_[stop_slot]);
    if (reason != LocalStop::None) stops_.stop(stop_slot, reason);
  }
}

void RunningRequests::for_each(const std::function<void(const RunningRequest&)>& visit) const {
  const std::scoped_lock lock(mutex_);
  for (std::uint32_t stop_slot = 0; stop_slot < kMaxStepSequences; ++stop_slot) {
    const bool is_stopped = stops_.read(stop_slot) != LocalStop::None;
    if (stop_slots_[stop_slot] && !is_stopped) visit(*stop_slots_[stop_slot]);
  }
}

RunningRequests::StopSlots stop_slots_of(std::span<const std::unique_ptr<Sequence>> running) {
  RunningRequests::StopSlots stop_slots;
  for (const auto& sequence : running) {
    const PromptRequest& request = sequence->request;
    stop_slots[sequence->stop_slot] = RunningRequest{request.engine_request_id, request.lease,
                                                     sequence->admission, request.deadline};
  }
  return stop_slots;
}

}  // namespace leasehold
