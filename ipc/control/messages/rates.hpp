/// What a tenant or an API key may use over time, and a worker's part of it.
///
/// Tokens are computed prompt tokens and emitted tokens. Cached prompt tokens do not count.
#pragma once

#include <cstdint>
#include <optional>

namespace leasehold::wire {

/// Small enough that products of tokens and nanoseconds fit into 64 bits
/// (worker/schedule/tenants/rate_allowance.hpp).
inline constexpr std::uint32_t kMostPerMinute = 10'000'000;
inline constexpr std::uint64_t kMostPerDay = 1'000'000'000'000;

/// Limits over all workers. A missing one means no limit.
struct RateLimits {
  std::optional<std::uint32_t> tokens_per_minute;  ///< Also the largest burst; 1 … 10^7.
  /// Accepted requests. Also the largest burst; 1 … 10^7. A rebind is not a new request.
  std::optional<std::uint32_t> requests_per_minute;
  /// Tokens in a day of UTC, by usage records; 1 … 10^12. Requests that were accepted before the
  /// limit is reached run to their end.
  std::optional<std::uint64_t> tokens_per_day;
  bool operator==(const RateLimits&) const = default;
};

/// A worker's part of RateLimits.
struct RateParts {
  std::optional<std::uint32_t> tokens_per_minute;  ///< 1 … 10 000 000
  /// Tokens that became free while no worker had a part of the limit; the worker adds them once;
  /// 0 … 10 000 000.
  std::uint32_t token_credit = 0;
  /// The worker first gives up what it has not used of an earlier part, because other hosts may
  /// have used it.
  bool starts_empty = false;
  /// The most tokens that one request can ever use: the limit over all workers. Missing:
  /// tokens_per_minute.
  std::optional<std::uint32_t> request_tokens = std::nullopt;
  std::optional<std::uint32_t> requests_per_minute = std::nullopt;  ///< 1 … 10 000 000
  std::uint32_t request_credit = 0;  ///< The same as `token_credit`, in requests.
  /// The worker's part of the tokens that are left of today. Requests whose usage record has not
  /// arrived are not subtracted; 0 … 10^12.
  std::optional<std::uint64_t> tokens_today = std::nullopt;
  std::int64_t day_end_boottime_ns = 0;  ///< When the next day begins; set with tokens_today.
  /// The same as `request_tokens` for a day: 1 … 10^12. Missing: not known.
  std::optional<std::uint64_t> request_day_tokens = std::nullopt;
  bool operator==(const RateParts&) const = default;
};

}  // namespace leasehold::wire
