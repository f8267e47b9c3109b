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
  if (!found->second.is_cached) return remove(found);
  found->second.held_since = ++last_held_;
  held_.emplace(last_held_, engine_request_id);
}

void EvictionTracker::blocks_cached(const RequestId& engine_request_id) {
  const auto found = entries_.find(engine_request_id);
  if (found != entries_.end()) found->second.is_cached = true;
}

void EvictionTracker::last_cached_block_evicted(const RequestId& engine_request_id) {
  const auto found = entries_.find(engine_request_id);
  if (found != entries_.end()) uncache(found);
}

void EvictionTracker::tenant_revoked(const TenantId& tenant) {
  uncache_if([&](const RequestId& id) { return tenant_of(id) == tenant; });
}

void EvictionTracker::cache_reset() {
  uncache_if([](const RequestId&) { return true; });
}

std::vector<RequestId> EvictionTracker::take_removed() {
  return std::exchange(removed_, {});
}

void EvictionTracker::make_room() {
  if (entries_.size() < max_tracked_ || held_.empty()) return;
  ++removed_early_;
  remove(entries_.find(held_.begin()->second));
}

/// Held requests leave in the order in which they ended, running ones stay until their end.
template <class Holds>
void EvictionTracker::uncache_if(const Holds& holds) {
  const auto held = held_;  // uncache() erases from it
  for (const auto& [since, id] : held) {
    if (holds(id)) uncache(entries_.find(id));
  }
  for (auto& [id, entry] : entries_) {
    if (holds(id)) entry.is_cached = false;
  }
}

void EvictionTracker::uncache(Entries::iterator entry) {
  entry->second.is_cached = false;
  if (!entry->second.is_running) remove(entry);
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
