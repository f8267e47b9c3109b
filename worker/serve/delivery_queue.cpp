#include "worker/serve/delivery_queue.hpp"

#include <algorithm>
#include <iterator>

namespace leasehold {
namespace {

const RequestId& request_of(const SchedulerEvent& event) {
  return std::visit([](const auto& e) -> const RequestId& { return e.engine_request_id; }, event);
}

}  // namespace

void DeliveryQueue::add(std::vector<SchedulerEvent> events) {
  const std::scoped_lock lock(mutex_);
  queue_.insert(queue_.end(), std::make_move_iterator(events.begin()),
                std::make_move_iterator(events.end()));
}

void DeliveryQueue::add_urgent(Completed completed) {
  const std::scoped_lock lock(mutex_);
  urgent_.push_back(std::move(completed));
}

std::optional<SchedulerEvent> DeliveryQueue::take() {
  const std::scoped_lock lock(mutex_);
  if (!urgent_.empty()) {
    const auto own =
        std::find_if(queue_.begin(), queue_.end(), [this](const SchedulerEvent& event) {
          return request_of(event) == urgent_.front().engine_request_id;
        });
    if (own != queue_.end()) return take_at(own);
    SchedulerEvent next = std::move(urgent_.front());
    urgent_.pop_front();
    return next;
  }
  if (queue_.empty()) return std::nullopt;
  return take_at(queue_.begin());
}

SchedulerEvent DeliveryQueue::take_at(Queue::iterator position) {
  SchedulerEvent next = std::move(*position);
  queue_.erase(position);
  return next;
}

}  // namespace leasehold
