#include "worker/schedule/token_allowance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "common/expects.hpp"
#include "ipc/control/message_limits.hpp"

namespace leasehold {
namespace {

constexpr std::int64_t kPartsPerToken = Duration(std::chrono::minutes(1)).count();
/// The largest debt and the largest demand that are counted. Larger than any queue's tokens; the
/// sum of two stays below 2^63 parts.
constexpr std::int64_t kMostTokens = 50'000'000;
static_assert(kMostTokens >= wire::kMostTokensPerMinute);
static_assert(2 * kMostTokens < std::numeric_limits<std::int64_t>::max() / kPartsPerToken);

}  // namespace

void TokenAllowance::set_limit(std::uint32_t tokens_per_minute, TimePoint now) {
  fill(now);
  limit_ = tokens_per_minute;
  if (limit_ > 0) balance_ = std::min(balance_, capacity());
}

void TokenAllowance::add(std::uint32_t tokens) {
  const std::int64_t room = capacity() - balance_;
  balance_ += std::min(room, std::min<std::int64_t>(tokens, kMostTokens) * kPartsPerToken);
}

void TokenAllowance::charge(std::uint32_t tokens, TimePoint now) {
  fill(now);
  balance_ -= std::min<std::int64_t>(tokens, kMostTokens) * kPartsPerToken;
  balance_ = std::max(balance_, -kMostTokens * kPartsPerToken);
}

Duration TokenAllowance::wait_for(std::uint64_t tokens, TimePoint now) {
  expects(limit_ > 0, "without a limit the wait would not end");
  fill(now);
  const auto wanted = static_cast<std::int64_t>(std::min<std::uint64_t>(tokens, kMostTokens));
  const std::int64_t missing = wanted * kPartsPerToken - balance_;
  return Duration(missing <= 0 ? 0 : (missing - 1) / limit_ + 1);
}

/// The division comes first, because the product overflows after a long idle time.
void TokenAllowance::fill(TimePoint now) {
  const std::int64_t passed_ns = (now - filled_).count();
  if (passed_ns <= 0) return;
  filled_ = now;
  if (limit_ == 0) return;
  const std::int64_t missing = capacity() - balance_;
  balance_ = passed_ns > missing / limit_ ? capacity() : balance_ + passed_ns * limit_;
}

std::int64_t TokenAllowance::capacity() const {
  return limit_ * kPartsPerToken;
}

void TokenAllowances::set_quota(const wire::TenantQuota& quota, TimePoint now) {
  const auto found = allowances_.find(quota.tenant);
  if (quota.is_withdrawn()) {
    if (found != allowances_.end()) found->second.set_limit(0, now);
  } else if (quota.tokens_per_minute) {
    TokenAllowance& allowance = allowances_.try_emplace(quota.tenant, now).first->second;
    allowance.set_limit(*quota.tokens_per_minute, now);
    allowance.add(quota.token_credit);
  } else if (found != allowances_.end()) {
    allowances_.erase(found);
  }
}

Result<void> TokenAllowances::check(const TenantId& tenant, std::uint64_t prompt_tokens,
                                    std::uint64_t owed, TimePoint now) {
  const auto found = allowances_.find(tenant);
  if (found == allowances_.end() || found->second.limit() == 0) return {};
  TokenAllowance& allowance = found->second;
  const std::uint64_t covered = std::min<std::uint64_t>(prompt_tokens, allowance.limit());
  const Duration wait = allowance.wait_for(covered + owed, now);
  if (wait == Duration::zero()) return {};
  const std::int64_t wait_ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  return std::unexpected(
      Error{.code = Errc::QuotaTokens,
            .detail = fmt::format("tenant {} may use {} tokens per minute on this worker, and the "
                                  "prompt's {} are there in {} ms; retry then, or raise "
                                  "--tokens-per-minute",
                                  tenant.value, allowance.limit(), prompt_tokens, wait_ms),
            .retry_after_ms = wait_ms});
}

void TokenAllowances::charge(const TenantId& tenant, std::uint32_t tokens, TimePoint now) {
  const auto found = allowances_.find(tenant);
  if (found != allowances_.end()) found->second.charge(tokens, now);
}

}  // namespace leasehold
