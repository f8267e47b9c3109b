#include "broker/books/rate_shares.hpp"

#include <algorithm>
#include <utility>

namespace leasehold {
namespace {

std::uint32_t credit_of(std::uint32_t part, Duration idle) {
  return static_cast<std::uint32_t>(idle.count() * part / IdleTime::kMost.count());
}

/// A worker's part of the tokens that are left for the day; none if nothing is left.
std::uint64_t left_on(const Shares& shares, const Share& share, std::uint64_t limit,
                      std::uint64_t used) {
  return used >= limit ? 0 : part_on(shares, share, limit - used);
}

}  // namespace

void IdleTime::begin(TimePoint now) {
  if (!since_) since_ = now;
}

Duration IdleTime::end(TimePoint now) {
  if (!since_) return {};
  return std::clamp(now - *std::exchange(since_, {}), Duration::zero(), kMost);
}

std::uint64_t part_on(const Shares& shares, const Share& share, std::uint64_t limit) {
  std::uint64_t requests = 0;
  for (const auto& [worker, each] : shares) requests += each.assigned + 1;
  return std::max<std::uint64_t>(1, limit * (share.assigned + 1ull) / requests);
}

wire::RateParts rate_parts(const Shares& shares, const Share& share, const wire::RateLimits& limits,
                           const journal::DayUse& use, const RateContext& context) {
  const auto part = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(part_on(shares, share, limit));
  };
  wire::RateParts parts;
  if (limits.tokens_per_minute) {
    parts.tokens_per_minute = part(*limits.tokens_per_minute);
    parts.token_credit = credit_of(*parts.tokens_per_minute, context.idle);
  }
  parts.request_tokens = limits.tokens_per_minute;
  if (limits.requests_per_minute) {
    parts.requests_per_minute = part(*limits.requests_per_minute);
    parts.request_credit = credit_of(*parts.requests_per_minute, context.idle);
  }
  if (!limits.tokens_per_day) return parts;
  const std::uint64_t used = use.tokens_on(context.wall.day(context.now));
  parts.tokens_today = left_on(shares, share, *limits.tokens_per_day, used);
  parts.request_day_tokens = limits.tokens_per_day;
  parts.day_end_boottime_ns = context.wall.day_end(context.now).boottime_ns;
  return parts;
}

bool differ(const wire::RateParts& one, const wire::RateParts& other) {
  wire::RateParts credited = one;
  credited.token_credit = other.token_credit;
  credited.request_credit = other.request_credit;
  credited.starts_empty = other.starts_empty;
  return credited != other;
}

}  // namespace leasehold
