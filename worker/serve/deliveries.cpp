#include "worker/serve/deliveries.hpp"

#include <algorithm>
#include <iterator>

namespace leasehold {
namespace {

const RequestId& request_of(const SchedulerEvent& event) {
  return std::visit([](const auto& e) -> const RequestId& { return e.request; }, event);
}

}  // namespace

void Deliveries::add(std::vector<SchedulerEvent> events) {
  const std::scoped_lock lock(mutex_);
  queue_.insert(queue_.end(), std::make_move_iterator(events.begin()),
                std::make_move_iterator(events.end()));
}

void Deliveries::add_urgent(Completed completed) {
  const std::scoped_lock lock(mutex_);
  urgent_.push_back(std::move(completed));
}

std::optional<Deliveries::Next> Deliveries::take() {
  const std::scoped_lock lock(mutex_);
  if (!urgent_.empty()) {
    const auto own = first_of(urgent_.front().request, queue_.begin());
    if (own != queue_.end()) return take_at(own);
    Next next{std::move(urgent_.front())};
    urgent_.pop_front();
    return next;
  }
  if (queue_.empty()) return std::nullopt;
  return take_at(queue_.begin());
}

Deliveries::Next Deliveries::take_at(Queue::iterator place) {
  Next next{std::move(*place)};
  const auto after = queue_.erase(place);
  if (!std::holds_alternative<Token>(next.event)) return next;
  const auto follower = first_of(request_of(next.event), after);
  if (follower == queue_.end()) return next;
  const auto* completed = std::get_if<Completed>(&*follower);
  next.last = completed != nullptr && !completed->verdict;
  return next;
}

Deliveries::Queue::iterator Deliveries::first_of(const RequestId& request, Queue::iterator from) {
  return std::find_if(from, queue_.end(), [&request](const SchedulerEvent& event) {
    return request_of(event) == request;
  });
}

}  // namespace leasehold
