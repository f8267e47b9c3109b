#include "worker/index_sync/eviction_tracker.hpp"

#include <utility>

#include "worker/serve/request_ids.hpp"

namespace leasehold {

void EvictionTracker::admitted(const RequestId& engine_request_id) {
  const auto found = entries_.find(engine_request_id);
  if (found != entries_.end()) {
    held_.erase(std::exchange(found->second.held_since, 0));
    found->second.is_running = true;
    return;
  }
  make_room();
  if (entries_.size() >= max_tracked_) {
    ++untracked_;
    return;
  }
  entries_.emplace(engine_request_id, Entry{});
  ++users_[to_client_request_id(engine_request_id)];
}

void EvictionTracker::ended(const RequestId& engine_request_id) {
  const auto found = entries_.find(engine_request_id);
  if (found == entries_.end() || !std::exchange(found->second.is_running, false)) return;
  if (found->second.holds == 0) return remove(found);
  found->second.held_since = ++last_held_;
  held_.emplace(last_held_, engine_request_id);
}

void EvictionTracker::kv_held(const RequestId& engine_request_id) {
  const auto found = entries_.find(engine_request_id);
  if (found != entries_.end()) ++found->second.holds;
}

/// A hold of a request that left early or was not tracked is not known.
void EvictionTracker::kv_gone(const RequestId& engine_request_id) {
  const auto found = entries_.find(engine_request_id);
  if (found == entries_.end() || found->second.holds == 0) return;
  if (--found->second.holds == 0 && !found->second.is_running) remove(found);
}

void EvictionTracker::end_all() {
  while (!held_.empty()) remove(entries_.find(held_.begin()->second));
  while (!entries_.empty()) remove(entries_.begin());
}

std::vector<RequestId> EvictionTracker::take_removed() {
  return std::exchange(removed_, {});
}

void EvictionTracker::make_room() {
  if (entries_.size() < max_tracked_ || held_.empty()) return;
  ++removed_early_;
  remove(entries_.find(held_.begin()->second));
}

void EvictionTracker::remove(Entries::iterator entry) {
  RequestId client_request_id = to_client_request_id(entry->first);
  held_.erase(entry->second.held_since);
  entries_.erase(entry);
  const auto users = users_.find(client_request_id);
  if (--users->second > 0) return;
  users_.erase(users);
  removed_.push_back(std::move(client_request_id));
}

}  // namespace leasehold
