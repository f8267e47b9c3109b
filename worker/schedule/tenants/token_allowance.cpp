#include "worker/schedule/tenants/token_allowance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "common/expects.hpp"
#include "ipc/control/messages/limits.hpp"

namespace leasehold {
namespace {

constexpr std::int64_t kPartsPerToken = Duration(std::chrono::minutes(1)).count();
/// Limit on the debt and the demand that are counted. Larger than any queue's tokens; the sum of
/// two stays below 2^63 parts.
constexpr std::int64_t kMostTokens = 50'000'000;
constexpr std::int64_t kMaxParts = kMostTokens * kPartsPerToken;
static_assert(kMostTokens >= wire::kMostTokensPerMinute);
static_assert(2 * kMostTokens < std::numeric_limits<std::int64_t>::max() / kPartsPerToken);

std::int64_t parts_of(std::uint64_t tokens) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(tokens, kMostTokens)) * kPartsPerToken;
}

/// The tenant's tokens per minute over all workers, at least those of this worker.
std::uint32_t whole_limit(const wire::TenantQuota& quota) {
  return std::max(*quota.tokens_per_minute, quota.request_tokens.value_or(0));
}

}  // namespace

void TokenAllowance::set_limit(std::uint32_t tokens_per_minute, TimePoint now) {
  fill(now);
  limit_ = tokens_per_minute;
  if (limit_ > 0) balance_ = std::min(balance_, capacity());
}

void TokenAllowance::add(std::uint64_t tokens) {
  balance_ = std::min(balance_ + parts_of(tokens), limit_ > 0 ? capacity() : kMaxParts);
}

void TokenAllowance::charge(std::uint64_t tokens, TimePoint now) {
  fill(now);
  balance_ -= parts_of(tokens);
  balance_ = std::max(balance_, -kMaxParts);
}

Duration TokenAllowance::wait_for(std::uint64_t tokens, TimePoint now) {
  expects(limit_ > 0, "without a limit the wait would not end");
  fill(now);
  const std::int64_t missing = parts_of(tokens) - balance_;
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
  const auto found = limited_.find(quota.tenant);
  if (quota.is_withdrawn()) {
    if (found != limited_.end()) found->second.allowance.set_limit(0, now);
  } else if (quota.tokens_per_minute) {
    Limited& limited =
        limited_.try_emplace(quota.tenant, Limited{.allowance = TokenAllowance(now)}).first->second;
    limited.allowance.set_limit(*quota.tokens_per_minute, now);
    limited.allowance.add(quota.token_credit);
    limited.most_per_request = whole_limit(quota);
  } else if (found != limited_.end()) {
    limited_.erase(found);
  }
}

const TokenAllowances::Limited* TokenAllowances::find(const TenantId& tenant) const {
  const auto found = limited_.find(tenant);
  const bool is_limited = found != limited_.end() && found->second.allowance.limit() > 0;
  return is_limited ? &found->second : nullptr;
}

std::optional<std::uint32_t> TokenAllowances::most_per_request(const TenantId& tenant) const {
  const Limited* limited = find(tenant);
  if (limited == nullptr) return std::nullopt;
  return limited->most_per_request;
}

Result<void> TokenAllowances::take(const TenantId& tenant, const TokenDemand& demand,
                                   TimePoint now) {
  if (find(tenant) == nullptr) return {};
  Limited& limited = limited_.at(tenant);
  if (demand.tokens > limited.most_per_request) {
    return fail(Errc::BadRequest,
                fmt::format("prompt and answer are up to {} tokens, and tenant {} may use {} per "
                            "minute; ask for fewer tokens, or raise --tokens-per-minute",
                            demand.tokens, tenant.value, limited.most_per_request));
  }
  TokenAllowance& allowance = limited.allowance;
  const std::uint64_t covered = std::min<std::uint64_t>(demand.needed, allowance.limit());
  const Duration wait = allowance.wait_for(covered, now);
  if (wait == Duration::zero()) {
    allowance.charge(demand.tokens, now);
    return {};
  }
  const std::int64_t wait_ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  return std::unexpected(
      Error{.code = Errc::QuotaTokens,
            .detail = fmt::format("tenant {} may use {} tokens per minute on this worker, and the "
                                  "request's {} are there in {} ms; retry then, ask for fewer, or "
                                  "raise --tokens-per-minute",
                                  tenant.value, allowance.limit(), demand.needed, wait_ms),
            .retry_after_ms = wait_ms});
}

void TokenAllowances::give_back(const TenantId& tenant, std::uint64_t tokens) {
  const auto found = limited_.find(tenant);
  if (found != limited_.end()) found->second.allowance.add(tokens);
}

}  // namespace leasehold
