/// Limits the message rate of each user, so that one user cannot starve the others.
///
/// All connections of a user share one budget, and every message counts, even if it is refused.
/// Beyond the budget the broker stops reading from that user; further messages wait in the sender's
/// socket. Operators are exempt, so that they can always act. Threads: the io_context's thread.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "broker/books/ids.hpp"
#include "common/token_bucket.hpp"

namespace leasehold {

struct RateConfig {
  Rate lines{.per_second = 2'000, .burst = 1'000};  ///< Rate of message weight per user.
  /// This rate is higher, because a worker calls for its tenants.
  Rate worker_lines{.per_second = 20'000, .burst = 40'000};
  Rate events{.per_second = 20'000, .burst = 40'000};  ///< Events reported by one worker.
  std::size_t connection_weight = 16;                  ///< Cost of a new connection.
  /// Backlog beyond which new connections are refused.
  Duration max_wait = std::chrono::seconds(2);
};

class RateLimits {
 public:
  explicit RateLimits(std::set<uid_t> worker_uids, const RateConfig& config = {})
      : config_(config), worker_uids_(std::move(worker_uids)) {}

  /// Charges a message and returns how long it must wait before it is processed.
  Duration admit_line(uid_t uid, std::size_t weight, TimePoint now);

  /// Charges a new connection; refuses it if the user's backlog exceeds `max_wait`.
  bool admit_connection(uid_t uid, TimePoint now);

  /// Number of the `reported` events to accept; the rest is dropped and counted.
  std::size_t admit_events(ConnectionId connection, std::size_t reported, TimePoint now);
  /// Events dropped since the last call.
  std::uint64_t take_dropped() { return std::exchange(dropped_, 0); }

  bool has_dropped() const { return dropped_ > 0; }

  void forget(ConnectionId connection) { events_.erase(connection); }

 private:
  TokenBucket* bucket_of(uid_t uid, TimePoint now);

  RateConfig config_;
  std::set<uid_t> worker_uids_;
  std::map<uid_t, TokenBucket> lines_;  ///< Entries are never removed: a machine has few users.
  std::map<ConnectionId, TokenBucket> events_;
  std::uint64_t dropped_ = 0;
};

}  // namespace leasehold
