#include "worker/engine/running_requests.hpp"

namespace leasehold {

void RunningRequests::occupy(const Places& places) {
  const std::scoped_lock lock(mutex_);
  bool changed = false;
  for (std::uint32_t place = 0; place < kMaxStepSequences; ++place) {
    if (places_[place] == places[place]) continue;
    stops_.clear(place);
    places_[place] = places[place];
    changed = true;
  }
  if (changed && alarm_ != nullptr) alarm_->wake();
}

void RunningRequests::wake_on_change(BoottimeTimer* alarm) {
  const std::scoped_lock lock(mutex_);
  alarm_ = alarm;
}

bool RunningRequests::stop(const RequestId& request, LocalStop reason) {
  const std::scoped_lock lock(mutex_);
  for (std::uint32_t place = 0; place < kMaxStepSequences; ++place) {
    if (!places_[place] || places_[place]->request != request) continue;
    stops_.stop(place, reason);
    return true;
  }
  return false;
}

void RunningRequests::stop_due(const Due& due) {
  const std::scoped_lock lock(mutex_);
  for (std::uint32_t place = 0; place < kMaxStepSequences; ++place) {
    if (!places_[place] || stops_.read(place) != LocalStop::None) continue;
    const LocalStop reason = due(*places_[place]);
    if (reason != LocalStop::None) stops_.stop(place, reason);
  }
}

void RunningRequests::each(const std::function<void(const RunningRequest&)>& visit) const {
  const std::scoped_lock lock(mutex_);
  for (std::uint32_t place = 0; place < kMaxStepSequences; ++place) {
    const bool goes_on = stops_.read(place) == LocalStop::None;
    if (places_[place] && goes_on) visit(*places_[place]);
  }
}

}  // namespace leasehold
