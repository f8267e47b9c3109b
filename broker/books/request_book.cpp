#include "broker/books/request_book.hpp"

#include <algorithm>

namespace leasehold {
namespace {

const wire::LeaseAcquired* acquired_lease(const std::optional<Result<Answer>>& answer) {
  if (!answer || !*answer) return nullptr;
  return std::get_if<wire::LeaseAcquired>(&(*answer)->body);
}

}  // namespace

RequestBook::Lookup RequestBook::begin(const Caller& caller) {
  if (caller.request_id.value.empty()) return New{};
  const Key key{caller.uid, caller.request_id};
  if (const auto found = entries_.find(key); found != entries_.end()) {
    Entry& entry = found->second;
    if (entry.digest != journal::digest(caller.fingerprint)) return Conflict{};
    if (entry.answer) return Replayed{*entry.answer};
    const CallId first = entry.waiting.front();
    entry.waiting.push_back(caller.call);
    return Joined{first};
  }
  entries_.emplace(key,
                   Entry{.digest = journal::digest(caller.fingerprint), .waiting = {caller.call}});
  in_flight_.emplace(caller.call, key);
  order_[key.first].push_back(key.second);
  evict_oldest();
  return New{};
}

void RequestBook::restore(const journal::RequestKey& key, Answer answer) {
  const Key id{key.uid, RequestId{key.request_id}};
  const auto [it, added] =
      entries_.emplace(id, Entry{.digest = key.digest, .answer = std::move(answer)});
  if (!added) return;
  order_[id.first].push_back(id.second);
  pin_if_lease_reply(id, it->second);
  evict_oldest();
}

void RequestBook::release(const journal::RequestKey& key, LeaseId lease) {
  const Key id{key.uid, RequestId{key.request_id}};
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second.kept) return;
  if (acquired_lease(found->second.answer)->lease != lease)
    return;  // a later call with the same id
  found->second.kept = false;
  --kept_;
  order_[id.first].push_back(id.second);
  evict_oldest();
}

std::vector<CallId> RequestBook::finish(CallId call, const Result<Answer>& answer) {
  const auto found = in_flight_.find(call);
  if (found == in_flight_.end()) return {call};
  const Key key = found->second;
  in_flight_.erase(found);
  Entry& entry = entries_.at(key);
  std::vector<CallId> waiting = std::move(entry.waiting);
  const bool retryable = !answer && is_retryable(answer.error().code);
  if (retryable) {
    forget(key);
  } else {
    entry.answer = answer;
    entry.waiting.clear();
    pin_if_lease_reply(key, entry);
  }
  return waiting;
}

void RequestBook::pin_if_lease_reply(const Key& key, Entry& entry) {
  if (acquired_lease(entry.answer) == nullptr) return;
  remove_from_order(key);
  entry.kept = true;
  ++kept_;
}

void RequestBook::forget(const Key& key) {
  entries_.erase(key);
  remove_from_order(key);
}

/// Checks the oldest entry, then searches from the newest: the key is usually at one of the ends.
void RequestBook::remove_from_order(const Key& key) {
  const auto ids = order_.find(key.first);
  std::deque<RequestId>& of_user = ids->second;
  if (of_user.front() == key.second) {
    of_user.pop_front();
  } else {
    of_user.erase(std::prev(std::find(of_user.rbegin(), of_user.rend(), key.second).base()));
  }
  if (of_user.empty()) order_.erase(ids);
}

void RequestBook::evict_oldest() {
  if (entries_.size() - kept_ <= kMaxEntries) return;
  const auto most = std::ranges::max_element(
      order_, {}, [](const auto& of_user) { return of_user.second.size(); });
  for (const RequestId& id : most->second) {
    const Key key{most->first, id};
    if (entries_.at(key).answer) return forget(key);  // a call without an answer is kept
  }
}

}  // namespace leasehold
