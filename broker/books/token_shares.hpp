/// Divides a tenant's tokens per minute among the workers that have live leases of it.
///
/// A worker counts its part in a bucket (worker/schedule/tenants/token_allowance.hpp) that starts
/// empty and keeps its balance between leases. So over all workers a tenant gains as many tokens as
/// its limit allows, even if it moves between workers. The tokens come from the parts, which add up
/// to the limit, and from IdleTokens while no worker has a part.
///
/// Pure. Threads: one.
#pragma once

#include <optional>

#include "broker/books/shares.hpp"
#include "common/clock.hpp"

namespace leasehold {

/// A worker's part of `limit`, at least 1. It is proportional to the number of requests that the
/// worker may run, plus one, so that a worker without requests can accept its first one.
/// Precondition: `share` is one of `shares`.
std::uint32_t tokens_per_minute_on(const Shares& shares, const Share& share, std::uint32_t limit);

/// The tokens that a tenant gains while no worker has a part of its limit: at most one minute's.
class IdleTokens {
 public:
  /// A new tenant counts as idle for the whole last minute.
  explicit IdleTokens(TimePoint now);

  /// Call it when no worker has a part any more. Does nothing if the idle time has begun already.
  void begin(TimePoint now);
  /// Call it when a worker gets a part. Returns the tokens gained in the idle time, at `limit`
  /// tokens per minute; 0 if no idle time has begun.
  std::uint32_t end(std::uint32_t limit, TimePoint now);

 private:
  std::optional<TimePoint> since_;
};

}  // namespace leasehold
