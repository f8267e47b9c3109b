#include "broker/server/rate_limits.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace leasehold {

TokenBucket& RateLimits::bucket(std::map<ConnectionId, TokenBucket>& buckets,
                                ConnectionId connection, const Rate& rate, TimePoint now) {
  return buckets.try_emplace(connection, rate, now).first->second;
}

Result<void> RateLimits::admit_call(ConnectionId connection, uid_t uid, TimePoint now) {
  if (uid == 0 || uid == ::geteuid()) return {};
  const Rate& rate = worker_uids_.contains(uid) ? config_.worker_calls : config_.calls;
  TokenBucket& left = bucket(calls_, connection, rate, now);
  if (left.take(1, now) == 1) return {};
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(left.wait(now));
  return fail(Errc::QueueFull, fmt::format("more than {} calls a second over this connection; wait "
                                           "{} ms before the next",
                                           rate.per_second, wait.count()));
}

std::size_t RateLimits::admit_events(ConnectionId connection, std::size_t reported, TimePoint now) {
  const std::size_t taken = bucket(events_, connection, config_.events, now).take(reported, now);
  dropped_ += reported - taken;
  return taken;
}

void RateLimits::forget(ConnectionId connection) {
  calls_.erase(connection);
  events_.erase(connection);
}

}  // namespace leasehold
