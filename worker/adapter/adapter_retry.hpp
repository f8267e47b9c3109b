/// When a worker repeats a call to the broker about an adapter, and when it gives up. Pure.
#pragma once

#include <algorithm>

#include "common/clock.hpp"
#include "common/result.hpp"

namespace leasehold {

/// How long callers wait for an adapter that cannot be loaded for lack of memory or of a broker.
inline constexpr Duration kAdapterTimeout = std::chrono::minutes(1);
inline constexpr Duration kAdapterRetryDelay = std::chrono::milliseconds(100);
/// While memory or a place in a quota comes back from an adapter that this worker evicted. Shorter
/// than what the broker says, because a fence takes a few milliseconds.
inline constexpr Duration kFreedRetryDelay = std::chrono::milliseconds(5);
inline constexpr TimePoint kNoRetry{INT64_MAX};

/// True for an error that says nothing about the adapter: the call did not reach a broker, or the
/// broker still ends an earlier lease of the version.
inline bool is_call_repeated(Errc code) {
  return code == Errc::ConnectionLost || code == Errc::TimedOut || code == Errc::BrokerLost ||
         code == Errc::IllegalTransition;
}

/// The next attempt at a call that failed with this error.
inline TimePoint next_attempt(const Error& why, TimePoint now) {
  return now +
         std::max<Duration>(std::chrono::milliseconds(why.retry_after_ms), kAdapterRetryDelay);
}

/// The error of callers that waited for kAdapterTimeout; `last` is the error of the last attempt.
inline Error given_up(Error last) {
  if (is_call_repeated(last.code)) last.code = Errc::BrokerLost;
  last.scope = FailureScope::Adapter;
  return last;
}

}  // namespace leasehold
