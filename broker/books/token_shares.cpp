#include "broker/books/token_shares.hpp"

#include <algorithm>
#include <utility>

namespace leasehold {
namespace {

constexpr Duration kBurstTime = std::chrono::minutes(1);

}  // namespace

std::uint32_t tokens_per_minute_on(const Shares& shares, const Share& share, std::uint32_t limit) {
  std::uint64_t requests = 0;
  for (const auto& [worker, each] : shares) requests += each.assigned + 1;
  const std::uint64_t part = limit * (share.assigned + 1ull) / requests;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, part));
}

IdleTokens::IdleTokens(TimePoint now) : since_(now - kBurstTime) {}

void IdleTokens::begin(TimePoint now) {
  if (!since_) since_ = now;
}

std::uint32_t IdleTokens::end(std::uint32_t limit, TimePoint now) {
  if (!since_) return 0;
  const Duration idle = std::clamp(now - *std::exchange(since_, {}), Duration::zero(), kBurstTime);
  return static_cast<std::uint32_t>(idle.count() * limit / kBurstTime.count());
}

}  // namespace leasehold
