#include "broker/books/request_book.hpp"

#include <algorithm>

namespace leasehold {
namespace {

const wire::LeaseAcquired* acquired_lease(const std::optional<Result<Answer>>& answer) {
  if (!answer || !*answer) return nullptr;
  return std::get_if<wire::LeaseAcquired>(&(*answer)->body);
}

}  // namespace

RequestBook::Key RequestBook::key_of(std::uint32_t uid, std::string_view request_id) {
  return {journal::digest(request_id), uid, RequestId{std::string(request_id)}};
}

RequestBook::Lookup RequestBook::begin(const Caller& caller) {
  if (caller.request_id.value.empty()) return New{};
  const std::uint64_t digest = journal::digest(caller.fingerprint);
  const auto [found, is_new] = entries_.try_emplace(key_of(caller.uid, caller.request_id.value),
                                                    Entry{.digest = digest, .waiting = {}});
  Entry& entry = found->second;
  if (!is_new) {
    if (entry.digest != digest) return Conflict{};
    if (entry.answer) return Replayed{*entry.answer};
    const CallId first = entry.waiting.front();
    entry.waiting.push_back(caller.call);
    return Joined{first};
  }
  entry.waiting.push_back(caller.call);
  in_flight_.emplace(caller.call, found);
  make_evictable(found);
  return New{};
}

void RequestBook::restore(const journal::RequestKey& key, Answer answer) {
  const auto [entry, added] =
      entries_.try_emplace(key_of(key.uid, key.request_id),
                           Entry{.digest = key.digest, .waiting = {}, .answer = std::move(answer)});
  if (!added) return;
  order_[key.uid].push_back(entry);
  pin_if_lease_reply(entry);
  evict_oldest();
}

void RequestBook::release(const journal::RequestKey& key, LeaseId lease) {
  const auto found = entries_.find(key_of(key.uid, key.request_id));
  if (found == entries_.end() || !found->second.pinned) return;
  if (acquired_lease(found->second.answer)->lease != lease)
    return;  // a later call with the same id
  found->second.pinned = false;
  --n_pinned_;
  make_evictable(found);
}

std::vector<CallId> RequestBook::finish(CallId call, const Result<Answer>& answer) {
  const auto found = in_flight_.find(call);
  if (found == in_flight_.end()) return {call};
  const Entries::iterator entry = found->second;
  in_flight_.erase(found);
  std::vector<CallId> waiting = std::move(entry->second.waiting);
  const bool retryable = !answer && is_retryable(answer.error().code);
  if (retryable) {
    forget(entry);
  } else {
    entry->second.answer = answer;
    entry->second.waiting.clear();
    pin_if_lease_reply(entry);
  }
  return waiting;
}

void RequestBook::pin_if_lease_reply(Entries::iterator entry) {
  if (acquired_lease(entry->second.answer) == nullptr) return;
  remove_from_order(entry);
  entry->second.pinned = true;
  ++n_pinned_;
}

void RequestBook::make_evictable(Entries::iterator entry) {
  order_[entry->first.uid].push_back(entry);
  evict_oldest();
}

void RequestBook::forget(Entries::iterator entry) {
  remove_from_order(entry);
  entries_.erase(entry);
}

/// Checks the oldest entry, then searches from the newest: the entry is usually at one of the ends.
void RequestBook::remove_from_order(Entries::iterator entry) {
  const auto of_user = order_.find(entry->first.uid);
  std::deque<Entries::iterator>& order = of_user->second;
  if (order.front() == entry) {
    order.pop_front();
  } else {
    order.erase(std::prev(std::find(order.rbegin(), order.rend(), entry).base()));
  }
  if (order.empty()) order_.erase(of_user);
}

void RequestBook::evict_oldest() {
  if (entries_.size() - n_pinned_ <= kMaxEntries) return;
  const auto most = std::ranges::max_element(
      order_, {}, [](const auto& of_user) { return of_user.second.size(); });
  for (const Entries::iterator entry : most->second)
    if (entry->second.answer) return forget(entry);  // a call without an answer is kept
}

}  // namespace leasehold
