/// Divides a tenant's tokens per minute among the workers that have live leases of it.
///
/// A worker counts its part in a bucket (worker/schedule/token_allowance.hpp) that starts empty and
/// keeps its balance between leases. So over all workers a tenant gains what its limit allows,
/// however it moves: from the parts, which add up to the limit, and, while no worker has one, from
/// IdleTokens.
///
/// Pure. Threads: one.
#pragma once

#include <optional>

#include "broker/books/shares.hpp"
#include "common/clock.hpp"

namespace leasehold {

/// A worker's part of `limit`: in proportion to the requests that it may run plus one, so that a
/// worker without a request can accept its first; at least 1. Precondition: `share` is one of
/// `shares`.
std::uint32_t tokens_per_minute_on(const Shares& shares, const Share& share, std::uint32_t limit);

/// The tokens that a tenant gains while no worker has a part of its limit: at most one minute's.
class IdleTokens {
 public:
  /// A new tenant has been idle for long.
  explicit IdleTokens(TimePoint now);

  /// No worker has a part any more. Does nothing while that is so.
  void begin(TimePoint now);
  /// A worker gets a part. Returns what the idle time has gained, at `limit` tokens per minute;
  /// nothing after the first call.
  std::uint32_t end(std::uint32_t limit, TimePoint now);

 private:
  std::optional<TimePoint> since_;
};

}  // namespace leasehold
