#include "broker/request_book.hpp"

#include <algorithm>

namespace leasehold {

RequestBook::Outcome RequestBook::begin(const Caller& caller) {
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
  forget_oldest();
  return New{};
}

void RequestBook::restore(const journal::RequestKey& key, Answer answer) {
  const Key id{key.uid, RequestId{key.request_id}};
  const bool added =
      entries_.emplace(id, Entry{.digest = key.digest, .answer = std::move(answer)}).second;
  if (added) order_[id.first].push_back(id.second);
  forget_oldest();
}

std::vector<CallId> RequestBook::finish(CallId call, const Result<Answer>& answer) {
  const auto found = in_flight_.find(call);
  if (found == in_flight_.end()) return {call};
  const Key key = found->second;
  in_flight_.erase(found);
  Entry& entry = entries_.at(key);
  std::vector<CallId> waiting = std::move(entry.waiting);
  const bool worth_a_retry = !answer && is_retryable(answer.error().code);
  if (worth_a_retry) {
    forget(key);
  } else {
    entry.answer = answer;
    entry.waiting.clear();
  }
  return waiting;
}

void RequestBook::forget(const Key& key) {
  entries_.erase(key);
  const auto ids = order_.find(key.first);
  std::erase(ids->second, key.second);
  if (ids->second.empty()) order_.erase(ids);
}

void RequestBook::forget_oldest() {
  if (entries_.size() <= kRemembered) return;
  const auto most = std::ranges::max_element(
      order_, {}, [](const auto& of_user) { return of_user.second.size(); });
  for (const RequestId& id : most->second) {
    const Key key{most->first, id};
    if (entries_.at(key).answer) return forget(key);  // else somebody still waits for it
  }
}

}  // namespace leasehold
