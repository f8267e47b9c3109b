/// Divides the limits on a tenant's use, and on that of its API keys, among the workers that have
/// live leases of the tenant.
///
/// A worker counts its part of a limit per minute in a bucket
/// (worker/schedule/tenants/rate_allowance.hpp) that starts empty and keeps its balance between
/// leases. So over all workers a tenant gains as much as its limit allows, even if it moves between
/// workers. The gain comes from the parts, which add up to the limit, and from IdleTime while no
/// worker has a part. A day's tokens are counted by the broker, from usage records; the workers
/// divide what is left.
///
/// Pure. Threads: one.
#pragma once

#include <optional>

#include "broker/books/rows.hpp"
#include "broker/books/shares.hpp"
#include "broker/books/wall_clock.hpp"
#include "ipc/control/messages/rates.hpp"

namespace leasehold {

/// Measures the time in which no worker has a part of a limit.
class IdleTime {
 public:
  /// Longer times count as one minute, because a limit permits one minute's use at once.
  static constexpr Duration kMost = std::chrono::minutes(1);

  /// A new tenant or key counts as idle for the whole last minute.
  explicit IdleTime(TimePoint now) : since_(now - kMost) {}
  static IdleTime since(TimePoint begin) { return IdleTime(begin + kMost); }

  /// Call it when no worker has a part any more. Does nothing if the idle time has begun already.
  void begin(TimePoint now);
  /// Call it when a worker gets a part. Returns the idle time, at most kMost; 0 if none has begun.
  Duration end(TimePoint now);

 private:
  std::optional<TimePoint> since_;
};

/// What the parts of a limit depend on besides the limit.
struct RateContext {
  Duration idle{};  ///< Gained while no worker had a part; see IdleTime.
  const WallClock& wall;
  TimePoint now;
};

/// A worker's part of `limit`, at least 1. It is proportional to the number of requests that the
/// worker may run, plus one, so that a worker without requests can accept its first one.
/// Precondition: `share` is one of `shares`.
std::uint64_t part_on(const Shares& shares, const Share& share, std::uint64_t limit);

/// A worker's part of all limits. Precondition: as for part_on.
wire::RateParts rate_parts(const Shares& shares, const Share& share, const wire::RateLimits& limits,
                           const journal::DayUse& use, const RateContext& context);

/// True if the parts differ in more than credits and their start, which are sent only with other
/// changes.
bool differ(const wire::RateParts& one, const wire::RateParts& other);

}  // namespace leasehold
