#include "broker/server/event_log.hpp"

#include <algorithm>

namespace leasehold {

void EventLog::append(events::Event event, TimePoint at) {
  if (file_) {
    if (auto written = file_->append(event, at); !written) {
      file_error_ = std::move(written).error();
      file_.reset();
    }
  }
  events_.push_back({next_++, {std::move(event), at}});
  if (events_.size() > capacity_) events_.pop_front();
}

std::vector<NumberedEvent> EventLog::after(std::uint64_t after, std::size_t limit) const {
  const auto first = std::ranges::upper_bound(events_, after, {}, &NumberedEvent::sequence);
  const auto available = static_cast<std::size_t>(events_.end() - first);
  const auto count = static_cast<std::ptrdiff_t>(std::min(limit, available));
  return {first, first + count};
}

}  // namespace leasehold
