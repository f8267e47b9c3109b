#include "worker/adapter/adapter_names.hpp"

namespace leasehold {

const ResolvedAdapter* AdapterNames::find(const Key& key) const {
  const auto found = names_.find(key);
  return found == names_.end() || !found->second.answer ? nullptr : &*found->second.answer;
}

bool AdapterNames::wait(const Key& key, AdapterWaiter waiter) {
  names_[key].waiters.push_back(std::move(waiter));
  return ask(key);
}

bool AdapterNames::ask(const Key& key) {
  Name& name = names_[key];
  return name.retry_at == kNoRetry && !std::exchange(name.is_asked, true);
}

void AdapterNames::forget() {
  for (auto& [key, name] : names_) name.answer.reset();
  std::erase_if(names_, [](const auto& entry) {
    const Name& name = entry.second;
    return !name.is_asked && name.waiters.empty() && name.retry_at == kNoRetry;
  });
}

void AdapterNames::forget(const Key& key) {
  if (const auto found = names_.find(key); found != names_.end()) found->second.answer.reset();
}

std::vector<AdapterWaiter> AdapterNames::answered(const Key& key,
                                                  const Result<ResolvedAdapter>& answer,
                                                  TimePoint now) {
  const auto found = names_.find(key);
  if (found == names_.end()) return {};
  Name& name = found->second;
  name.is_asked = false;
  if (!answer && is_call_repeated(answer.error().code)) {
    name.retry_at = next_attempt(answer.error(), now);
    name.failure = answer.error();
    return {};
  }
  std::vector<AdapterWaiter> waiters = std::exchange(name.waiters, {});
  if (answer) {
    name.answer = *answer;
  } else {
    names_.erase(found);
  }
  return waiters;
}

std::vector<AdapterNames::Key> AdapterNames::take_due(TimePoint now) {
  std::vector<Key> due;
  for (auto& [key, name] : names_) {
    if (name.retry_at > now) continue;
    name.retry_at = kNoRetry;
    name.is_asked = true;
    due.push_back(key);
  }
  return due;
}

std::vector<std::pair<AdapterWaiter, Error>> AdapterNames::take_expired(TimePoint now) {
  std::vector<std::pair<AdapterWaiter, Error>> expired;
  for (auto& [key, name] : names_) {
    const Error why = given_up(name.failure.value_or(Error{
        Errc::BrokerLost, "the broker does not answer; retry once it answers `brokerctl status`"}));
    std::erase_if(name.waiters, [&](const AdapterWaiter& waiter) {
      const bool is_late = now >= waiter.since + kAdapterTimeout;
      if (is_late) expired.emplace_back(waiter, why);
      return is_late;
    });
  }
  return expired;
}

TimePoint AdapterNames::next_due() const {
  TimePoint next = kNoRetry;
  for (const auto& [key, name] : names_) {
    next = std::min(next, name.retry_at);
    for (const AdapterWaiter& waiter : name.waiters)
      next = std::min(next, waiter.since + kAdapterTimeout);
  }
  return next;
}

}  // namespace leasehold
