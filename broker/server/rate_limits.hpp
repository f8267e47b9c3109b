/// What one connection may ask of the broker, so that no peer takes its time from the others.
///
/// Operators are exempt: they come to end such things. Threads: the one of the io_context.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "broker/ids.hpp"
#include "broker/token_bucket.hpp"
#include "common/result.hpp"

namespace leasehold {

struct RateConfig {
  Rate calls{.per_second = 200, .burst = 400};
  Rate worker_calls{.per_second = 5'000, .burst = 20'000};  ///< It calls for all its tenants.
  Rate events{.per_second = 20'000, .burst = 40'000};       ///< That a worker reports.
};

class RateLimits {
 public:
  explicit RateLimits(std::set<uid_t> worker_uids, const RateConfig& config = {})
      : config_(config), worker_uids_(std::move(worker_uids)) {}

  /// Errors: QueueFull naming the rate and how long to wait.
  Result<void> admit_call(ConnectionId connection, uid_t uid, TimePoint now);

  /// How many of `reported` events are taken; the rest is dropped and counted.
  std::size_t admit_events(ConnectionId connection, std::size_t reported, TimePoint now);
  /// Dropped since this was last asked.
  std::uint64_t take_dropped() { return std::exchange(dropped_, 0); }

  void forget(ConnectionId connection);

 private:
  TokenBucket& bucket(std::map<ConnectionId, TokenBucket>& buckets, ConnectionId connection,
                      const Rate& rate, TimePoint now);

  RateConfig config_;
  std::set<uid_t> worker_uids_;
  std::map<ConnectionId, TokenBucket> calls_;
  std::map<ConnectionId, TokenBucket> events_;
  std::uint64_t dropped_ = 0;
};

}  // namespace leasehold
