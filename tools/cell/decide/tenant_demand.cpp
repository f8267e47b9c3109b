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
  const std::uint32_t level = requests == 0 ? 0 : std::bit_ceil(std::min(requests, kMostRequests));
  if (level < level_ && now - since_ < kIdle) return;
  level_ = level;
  since_ = now;
}

Share TenantDemand::share() const {
  if (level_ == 0) return {};
  constexpr std::uint32_t kAll = std::numeric_limits<std::uint32_t>::max();
  return {.concurrent = level_, .blocks = kAll, .reserved = kAll, .tokens_per_minute = kAll};
}

}  // namespace leasehold::cell
