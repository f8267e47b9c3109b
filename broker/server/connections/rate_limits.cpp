#include "broker/server/connections/rate_limits.hpp"

#include "broker/server/connections/operators.hpp"

namespace leasehold {

/// Null for operators, which have no limit.
TokenBucket* RateLimits::bucket_of(uid_t uid, TimePoint now) {
  if (is_operator(uid)) return nullptr;
  const Rate& rate = worker_uids_.contains(uid) ? config_.worker_lines : config_.lines;
  return &lines_.try_emplace(uid, rate, now).first->second;
}

Duration RateLimits::admit_line(uid_t uid, std::size_t weight, TimePoint now) {
  TokenBucket* const bucket = bucket_of(uid, now);
  return bucket == nullptr ? Duration::zero() : bucket->reserve(weight, now);
}

bool RateLimits::admit_connection(uid_t uid, TimePoint now) {
  TokenBucket* const bucket = bucket_of(uid, now);
  if (bucket == nullptr) return true;
  if (bucket->wait(now) > config_.max_wait) return false;
  bucket->reserve(config_.connection_weight, now);
  return true;
}

std::size_t RateLimits::admit_events(ConnectionId connection, std::size_t reported, TimePoint now) {
  TokenBucket& left = events_.try_emplace(connection, config_.events, now).first->second;
  const std::size_t taken = left.take(reported, now);
  dropped_ += reported - taken;
  return taken;
}

}  // namespace leasehold
