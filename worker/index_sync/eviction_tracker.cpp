#include "worker/index_sync/eviction_tracker.hpp"

#include <algorithm>
#include <utility>

#include "worker/kv/request_ids.hpp"

namespace leasehold {

void EvictionTracker::admitted(const RequestId& engine_request_id) {
  const auto [entry, is_new] = entries_.try_emplace(engine_request_id);
  if (!is_new) unfile(entry);
  entry->second.is_running = true;
  file(entry);
  if (!is_new) return;
  ++users_[to_client_request_id(engine_request_id)];
  if (entries_.size() > max_tracked_) make_room();
}

void EvictionTracker::ended(const RequestId& engine_request_id) {
  const auto found = entries_.find(engine_request_id);
  if (found == entries_.end() || !found->second.is_running) return;
  if (found->second.holds == 0) return remove(found);
  unfile(found);
  found->second.is_running = false;
  file(found);
}

void EvictionTracker::kv_held(const RequestId& engine_request_id) {
  const auto found = entries_.find(engine_request_id);
  if (found != entries_.end()) ++found->second.holds;
}

/// Ignores requests that left early or were not tracked, whose holds are unknown.
void EvictionTracker::kv_gone(const RequestId& engine_request_id) {
  const auto found = entries_.find(engine_request_id);
  if (found == entries_.end() || found->second.holds == 0) return;
  if (--found->second.holds == 0 && !found->second.is_running) remove(found);
}

void EvictionTracker::end_all() {
  Ordered held;
  for (const auto& [tenant, of] : of_tenant_) held.insert(of.held.begin(), of.held.end());
  for (const auto& [since, id] : held) remove(entries_.find(id));
  while (!entries_.empty()) remove(entries_.begin());
}

std::vector<RequestId> EvictionTracker::take_removed() {
  return std::exchange(removed_, {});
}

void EvictionTracker::file(Entries::iterator entry) {
  OfTenant& of = of_tenant_[tenant_of(entry->first)];
  entry->second.since = ++last_;
  (entry->second.is_running ? of.running : of.held).emplace(last_, entry->first);
}

void EvictionTracker::unfile(Entries::iterator entry) {
  const auto of = of_tenant_.find(tenant_of(entry->first));
  (entry->second.is_running ? of->second.running : of->second.held).erase(entry->second.since);
  if (of->second.size() == 0) of_tenant_.erase(of);
}

void EvictionTracker::make_room() {
  const auto by_size = [](const auto& entry) { return entry.second.size(); };
  const OfTenant& most = std::ranges::max_element(of_tenant_, {}, by_size)->second;
  if (!most.held.empty()) {
    ++removed_early_;
    return remove(entries_.find(most.held.begin()->second));
  }
  ++untracked_;
  (void)forget(entries_.find(most.running.rbegin()->second));
}

/// Removes an entry. Returns true when no tracked request uses its client_request_id any more.
bool EvictionTracker::forget(Entries::iterator entry) {
  unfile(entry);
  const auto users = users_.find(to_client_request_id(entry->first));
  entries_.erase(entry);
  if (--users->second > 0) return false;
  users_.erase(users);
  return true;
}

void EvictionTracker::remove(Entries::iterator entry) {
  RequestId id = entry->first;
  if (forget(entry)) removed_.push_back(std::move(id));
}

}  // namespace leasehold
