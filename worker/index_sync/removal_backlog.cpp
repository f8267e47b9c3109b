#include "worker/index_sync/removal_backlog.hpp"

#include <algorithm>
#include <ranges>

namespace leasehold {

void IdQueue::push(const RequestId& id) {
  if (contains(id)) return;
  places_.emplace(id, order_.insert(order_.end(), id));
}

void IdQueue::erase(const RequestId& id) {
  const auto place = places_.find(id);
  if (place == places_.end()) return;
  order_.erase(place->second);
  places_.erase(place);
}

void IdQueue::pop() {
  places_.erase(order_.front());
  order_.pop_front();
}

std::vector<RequestId> IdQueue::front(std::size_t count) const {
  std::vector<RequestId> ids;
  std::ranges::copy(order_ | std::views::take(count), std::back_inserter(ids));
  return ids;
}

void RemovalBacklog::add_ended(const RequestId& id) {
  ended_.push(id);
  if (ended_.size() > limits_.max_ended) ended_.pop();
  push_pending(id);
}

void RemovalBacklog::add_live(const RequestId& id) {
  ended_.erase(id);
  pending_.erase(id);
}

void RemovalBacklog::push_pending(const RequestId& id) {
  pending_.push(id);
  if (pending_.size() <= limits_.max_pending) return;
  pending_.pop();
  ++dropped_;
}

void RemovalBacklog::confirm(std::span<const RequestId> batch) {
  for (const RequestId& id : batch) pending_.erase(id);
}

std::size_t RemovalBacklog::reconcile(std::span<const RequestId> listed) {
  std::size_t found = 0;
  for (const RequestId& id : listed) {
    if (!ended_.contains(id) || pending_.contains(id)) continue;
    push_pending(id);
    ++found;
  }
  return found;
}

}  // namespace leasehold
