/// What one user may ask of the broker, so that nobody takes its time from the others.
///
/// Every line of a user's connections counts, a refused one like any other, and all its connections
/// share one budget: more connections bring no more. Beyond it nothing is answered and nothing
/// read, the lines wait in the sender's socket. Operators are exempt: they come to end such things.
/// Threads: the one of the io_context.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "broker/books/ids.hpp"
#include "broker/server/token_bucket.hpp"

namespace leasehold {

struct RateConfig {
  Rate lines{.per_second = 2'000, .burst = 1'000};           ///< Weights, of one user.
  Rate worker_lines{.per_second = 20'000, .burst = 40'000};  ///< It calls for all its tenants.
  Rate events{.per_second = 20'000, .burst = 40'000};        ///< That a worker reports.
  std::size_t connection_weight = 16;                        ///< Of making one.
  Duration max_wait = std::chrono::seconds(2);               ///< Beyond it no connection is taken.
};

class RateLimits {
 public:
  explicit RateLimits(std::set<uid_t> worker_uids, const RateConfig& config = {})
      : config_(config), worker_uids_(std::move(worker_uids)) {}

  /// Charges a line; how long it must wait before it is looked at.
  Duration admit_line(uid_t uid, std::size_t weight, TimePoint now);

  /// Charges a new connection, unless its user is far behind with what it asked already.
  bool admit_connection(uid_t uid, TimePoint now);

  /// How many of `reported` events are taken; the rest is dropped and counted.
  std::size_t admit_events(ConnectionId connection, std::size_t reported, TimePoint now);
  /// Dropped since this was last asked.
  std::uint64_t take_dropped() { return std::exchange(dropped_, 0); }

  void forget(ConnectionId connection) { events_.erase(connection); }

 private:
  TokenBucket* bucket_of(uid_t uid, TimePoint now);

  RateConfig config_;
  std::set<uid_t> worker_uids_;
  std::map<uid_t, TokenBucket> lines_;  ///< Few users there are; none is forgotten.
  std::map<ConnectionId, TokenBucket> events_;
  std::uint64_t dropped_ = 0;
};

}  // namespace leasehold
