#include "tools/cell/decide/tenant_demand.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace leasehold::cell {
namespace {

/// Keeps bit_ceil within 32 bits. No host runs as many requests.
constexpr std::uint32_t kMostRequests = 1u << 20;

}  // namespace

void TenantDemand::seen(std::uint32_t requests, TimePoint now) {
  if (newest_ >= level_) since_ = now;  // they were as many until now
  newest_ = requests == 0 ? 0 : std::bit_ceil(std::min(requests, kMostRequests));
  if (newest_ < level_ && now - since_ < kIdle) return;
  level_ = newest_;
  since_ = now;
}

std::optional<TimePoint> TenantDemand::falls_at() const {
  return newest_ < level_ ? std::optional(since_ + kIdle) : std::nullopt;
}

Share TenantDemand::share() const {
  if (level_ == 0) return {};
  constexpr std::uint32_t kAll = std::numeric_limits<std::uint32_t>::max();
  return {.concurrent = level_, .blocks = kAll, .reserved = kAll, .tokens_per_minute = kAll};
}

}  // namespace leasehold::cell
