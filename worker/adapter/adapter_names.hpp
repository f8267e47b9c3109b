/// What the broker answered about the names of adapters, and the callers that wait for an answer.
///
/// An answer is valid until `forget`, which follows `adapters.changed`. Errors are not kept. A name
/// has at most one call in flight for each tenant; a call that does not reach the broker is
/// repeated.
///
/// Pure: time is an argument. Threads: one (the engine's).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "worker/adapter/adapter_actions.hpp"
#include "worker/adapter/adapter_retry.hpp"

namespace leasehold {

/// A caller that waits, with the tenant for which it asked.
struct AdapterWaiter {
  AdapterTicket ticket;
  TenantId tenant;
  TimePoint since;
  /// How often a version that the broker had named was gone when the worker opened it.
  std::uint32_t misses = 0;
};

class AdapterNames {
 public:
  using Key = std::pair<TenantId, std::string>;  ///< A tenant, and the name that it asked for.

  /// The broker's answer; null if it is not known.
  const ResolvedAdapter* find(const Key& key) const;
  /// Lets the waiter wait for an answer. Returns true if the broker must be asked now.
  bool wait(const Key& key, AdapterWaiter waiter);
  /// Returns true if the broker must be asked now; false while a call is in flight.
  bool ask(const Key& key);
  void forget();
  void forget(const Key& key);

  /// Records the end of a call. Returns the callers that waited for it; none if the call is
  /// repeated.
  std::vector<AdapterWaiter> answered(const Key& key, const Result<ResolvedAdapter>& answer,
                                      TimePoint now);

  /// The names to ask for now, because an earlier call did not reach the broker.
  std::vector<Key> take_due(TimePoint now);
  /// The callers that have waited for kAdapterTimeout, each with its error.
  std::vector<std::pair<AdapterWaiter, Error>> take_expired(TimePoint now);
  /// When `take_due` or `take_expired` has a result next.
  TimePoint next_due() const;

 private:
  struct Name {
    std::optional<ResolvedAdapter> answer;
    std::vector<AdapterWaiter> waiters;
    bool is_asked = false;
    TimePoint retry_at = kNoRetry;
    std::optional<Error> failure;  // of the last call, while it is repeated
  };
  std::map<Key, Name> names_;
};

}  // namespace leasehold
