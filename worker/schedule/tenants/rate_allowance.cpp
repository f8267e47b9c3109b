#include "worker/schedule/tenants/rate_allowance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "common/counted.hpp"
#include "common/expects.hpp"
#include "ipc/control/messages/limits.hpp"

namespace leasehold {
namespace {

/// Balances are counted in parts of a token or request; each nanosecond adds `limit` of them.
constexpr std::int64_t kPartsPerUnit = Duration(std::chrono::minutes(1)).count();
/// Balances and demands are clamped to this many tokens. It is more than the requests of any queue
/// need, and the sum of two such values stays below 2^63 parts.
constexpr std::int64_t kMostTokens = 50'000'000;
constexpr std::int64_t kMaxParts = kMostTokens * kPartsPerUnit;
static_assert(kMostTokens >= wire::kMostPerMinute);
static_assert(2 * kMostTokens < std::numeric_limits<std::int64_t>::max() / kPartsPerUnit);

/// Retry time while running requests hold the tokens that are left for the day. It is a guess,
/// because their end is not known.
constexpr Duration kRunningRequestEnds = std::chrono::seconds(1);

std::int64_t parts_of(std::uint64_t amount) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(amount, kMostTokens)) * kPartsPerUnit;
}

bool has_limits(const wire::RateParts& parts) {
  return parts.tokens_per_minute || parts.requests_per_minute || parts.tokens_today;
}

/// "tenant alice", or "API key 0011 of tenant alice".
std::string name_of(const RateOwner& owner) {
  const std::string tenant = "tenant " + owner.tenant.value;
  return owner.key.value.empty() ? tenant
                                 : fmt::format("API key {} of {}", owner.key.value, tenant);
}

/// The command that raises a limit of the owner.
std::string raise_with(const RateOwner& owner, std::string_view option, bool is_of_cell) {
  const bool is_key = !owner.key.value.empty();
  if (is_of_cell && is_key) return "raise the key's limit with `brokerctl cell keys`";
  return fmt::format("raise the limit with `brokerctl {}{} {}`", is_of_cell ? "cell " : "",
                     is_key ? "keys update" : "tenants admit", option);
}

std::vector<RateOwner> owners_of(const TenantId& tenant, const ApiKeyId& key) {
  if (key.value.empty()) return {{tenant, {}}};
  return {{tenant, {}}, {tenant, key}};
}

std::int64_t ms_until(Duration wait) {
  return std::chrono::ceil<std::chrono::milliseconds>(wait).count();
}

std::unexpected<Error> wait_error(Errc code, Duration wait, std::string detail) {
  return std::unexpected(
      Error{.code = code, .detail = std::move(detail), .retry_after_ms = ms_until(wait)});
}

Result<void> check_tokens(const RateOwner& owner, RateAllowance& allowance,
                          const RateDemand& demand, bool is_of_cell, TimePoint now) {
  if (allowance.limit() == 0) return {};
  const Duration wait =
      allowance.wait_for(std::min<std::uint64_t>(demand.needed, allowance.limit()), now);
  if (wait == Duration::zero()) return {};
  return wait_error(
      Errc::QuotaTokens, wait,
      fmt::format("{} may use {} per minute on this worker, and the request's "
                  "{} are available in {} ms; retry then, ask for fewer, or {}",
                  name_of(owner), counted(allowance.limit(), "token"), demand.needed,
                  ms_until(wait), raise_with(owner, "--tokens-per-minute", is_of_cell)));
}

/// An owner with a limit of requests per minute may rebind at least this often per minute in
/// addition, because many texts may end with one lease.
constexpr std::uint32_t kLeastRebindsPerMinute = 60;

std::uint32_t rebinds_per_minute(const wire::RateParts& parts) {
  if (!parts.requests_per_minute) return 0;
  return std::max(*parts.requests_per_minute, kLeastRebindsPerMinute);
}

Result<void> check_requests(const RateOwner& owner, RateAllowance& allowance, bool is_of_cell,
                            TimePoint now) {
  const Duration wait = allowance.wait_for(1, now);
  if (wait == Duration::zero()) return {};
  return wait_error(
      Errc::QuotaRequests, wait,
      fmt::format("{} may start {} per minute on this worker, and the next "
                  "is free in {} ms; retry then, or {}",
                  name_of(owner), counted(allowance.limit(), "request"), ms_until(wait),
                  raise_with(owner, "--requests-per-minute", is_of_cell)));
}

}  // namespace

void RateAllowance::set_limit(std::uint32_t per_minute, TimePoint now) {
  fill(now);
  limit_ = per_minute;
  if (limit_ > 0) balance_ = std::min(balance_, capacity());
}

void RateAllowance::add(std::uint64_t amount) {
  balance_ = std::min(balance_ + parts_of(amount), limit_ > 0 ? capacity() : kMaxParts);
}

void RateAllowance::charge(std::uint64_t amount, TimePoint now) {
  fill(now);
  balance_ -= parts_of(amount);
  balance_ = std::max(balance_, -kMaxParts);
}

Duration RateAllowance::wait_for(std::uint64_t amount, TimePoint now) {
  expects(limit_ > 0, "without a limit the wait would not end");
  fill(now);
  const std::int64_t missing = parts_of(amount) - balance_;
  return Duration(missing <= 0 ? 0 : (missing - 1) / limit_ + 1);
}

/// The division comes first, because the product overflows after a long idle time.
void RateAllowance::fill(TimePoint now) {
  const std::int64_t passed_ns = (now - filled_).count();
  if (passed_ns <= 0) return;
  filled_ = now;
  if (limit_ == 0) return;
  const std::int64_t missing = capacity() - balance_;
  balance_ = passed_ns > missing / limit_ ? capacity() : balance_ + passed_ns * limit_;
}

std::int64_t RateAllowance::capacity() const {
  return limit_ * kPartsPerUnit;
}

RateAllowance RateAllowance::full(std::uint32_t per_minute, TimePoint now) {
  RateAllowance allowance(now);
  allowance.limit_ = per_minute;
  allowance.balance_ = allowance.capacity();
  return allowance;
}

void RateAllowances::set_quota(const wire::TenantQuota& quota, TimePoint now) {
  const auto first = limited_.lower_bound({quota.tenant, {}});
  if (quota.is_withdrawn()) {
    for (auto it = first; it != limited_.end() && it->first.tenant == quota.tenant; ++it) {
      it->second.tokens.set_limit(0, now);
      it->second.requests.set_limit(0, now);
      it->second.rebinds.set_limit(0, now);
    }
    return;
  }
  std::set<RateOwner> named{{quota.tenant, {}}};
  set_limits({quota.tenant, {}}, quota.rates, std::nullopt, now);
  for (const wire::KeyQuota& key : quota.keys) {
    set_limits({quota.tenant, key.key}, key.rates, key.max_concurrent, now);
    named.insert({quota.tenant, key.key});
  }
  for (auto it = limited_.lower_bound({quota.tenant, {}});
       it != limited_.end() && it->first.tenant == quota.tenant;) {
    it->second.is_of_cell = quota.of_cell;
    it = named.contains(it->first) ? std::next(it) : limited_.erase(it);
  }
}

/// The limit of tokens per minute over all workers, which is at least this worker's part, bounds a
/// request.
void RateAllowances::set_limits(const RateOwner& owner, const wire::RateParts& parts,
                                std::optional<std::uint32_t> max_concurrent, TimePoint now) {
  if (!has_limits(parts) && !max_concurrent) {
    limited_.erase(owner);
    return;
  }
  const std::uint32_t rebinds = rebinds_per_minute(parts);
  Limited& limited = limited_
                         .try_emplace(owner, Limited{.tokens = RateAllowance(now),
                                                     .requests = RateAllowance(now),
                                                     .rebinds = RateAllowance::full(rebinds, now)})
                         .first->second;
  limited.tokens.set_limit(parts.tokens_per_minute.value_or(0), now);
  limited.requests.set_limit(parts.requests_per_minute.value_or(0), now);
  if (parts.starts_empty) {
    limited.tokens.give_up();
    limited.requests.give_up();
  }
  limited.tokens.add(parts.token_credit);
  limited.requests.add(parts.request_credit);
  limited.rebinds.set_limit(rebinds, now);
  limited.most_per_request =
      std::max(parts.tokens_per_minute.value_or(0), parts.request_tokens.value_or(0));
  limited.tokens_today = parts.tokens_today;
  limited.request_day_tokens = parts.request_day_tokens;
  limited.day_end = {parts.day_end_boottime_ns};
  limited.max_concurrent = max_concurrent;
}

bool RateAllowances::is_limited(const TenantId& tenant, const ApiKeyId& key) const {
  return std::ranges::any_of(owners_of(tenant, key),
                             [this](const RateOwner& owner) { return limited_.contains(owner); });
}

std::optional<std::uint64_t> RateAllowances::most_per_request(const TenantId& tenant,
                                                              const ApiKeyId& key) const {
  std::optional<std::uint64_t> most;
  for (const RateOwner& owner : owners_of(tenant, key)) {
    const auto found = limited_.find(owner);
    if (found == limited_.end() || found->second.tokens.limit() == 0) continue;
    most = std::min(most.value_or(found->second.most_per_request), found->second.most_per_request);
  }
  return most;
}

/// Nothing is taken before all allowances were checked, and no request is asked to wait that can
/// never be accepted.
Result<std::vector<RateOwner>> RateAllowances::take(const TenantId& tenant, const ApiKeyId& key,
                                                    const RateDemand& demand, TimePoint now) {
  std::vector<RateOwner> owners;
  for (const RateOwner& owner : owners_of(tenant, key)) {
    const auto found = limited_.find(owner);
    if (found == limited_.end()) continue;
    TRY(check_size(owner, found->second, demand));
    owners.push_back(owner);
  }
  for (const RateOwner& owner : owners) TRY(check(owner, limited_.at(owner), demand, now));
  for (const RateOwner& owner : owners) {
    Limited& limited = limited_.at(owner);
    if (limited.tokens.limit() > 0) limited.tokens.charge(demand.tokens, now);
    if (limited.requests.limit() > 0) limited.payer_of(demand, now).charge(1, now);
    limited.held_tokens += demand.needed;
    ++limited.requests_here;
  }
  return owners;
}

RateAllowance& RateAllowances::Limited::payer_of(const RateDemand& demand, TimePoint now) {
  const bool is_free = !demand.is_new_request && rebinds.wait_for(1, now) == Duration::zero();
  return is_free ? rebinds : requests;
}

Result<void> RateAllowances::check_size(const RateOwner& owner, const Limited& limited,
                                        const RateDemand& demand) {
  if (limited.request_day_tokens && demand.needed > *limited.request_day_tokens) {
    return fail(Errc::BadRequest,
                fmt::format("prompt and answer need {} tokens, and {} may use {} per day; ask for "
                            "fewer tokens, or {}",
                            demand.needed, name_of(owner), *limited.request_day_tokens,
                            raise_with(owner, "--tokens-per-day", limited.is_of_cell)));
  }
  if (limited.tokens.limit() == 0 || demand.tokens <= limited.most_per_request) return {};
  return fail(Errc::BadRequest,
              fmt::format("prompt and answer are up to {} tokens, and {} may use {} per minute; "
                          "ask for fewer tokens, or {}",
                          demand.tokens, name_of(owner), limited.most_per_request,
                          raise_with(owner, "--tokens-per-minute", limited.is_of_cell)));
}

Result<void> RateAllowances::check(const RateOwner& owner, Limited& limited,
                                   const RateDemand& demand, TimePoint now) {
  if (limited.max_concurrent && limited.requests_here >= *limited.max_concurrent) {
    return fail(Errc::QuotaConcurrent,
                fmt::format("{} has {} on this worker, of at most {}; wait until one "
                            "ends, or {}",
                            name_of(owner), counted(limited.requests_here, "request"),
                            *limited.max_concurrent,
                            raise_with(owner, "--max-concurrent", limited.is_of_cell)));
  }
  if (limited.requests.limit() > 0)
    TRY(check_requests(owner, limited.payer_of(demand, now), limited.is_of_cell, now));
  TRY(check_tokens(owner, limited.tokens, demand, limited.is_of_cell, now));
  if (!limited.tokens_today) return {};
  const std::uint64_t left = *limited.tokens_today;
  if (limited.held_tokens + demand.needed <= left) return {};
  const bool fits_today = demand.needed <= left;
  const Duration wait = fits_today ? kRunningRequestEnds : limited.day_end - now;
  return wait_error(
      Errc::QuotaTokens, std::max<Duration>(wait, kRunningRequestEnds),
      fmt::format("{} has {} left today on this worker, running requests use {} of them, and "
                  "this one needs {}; {}, or {}",
                  name_of(owner), counted(left, "token"), std::min(left, limited.held_tokens),
                  demand.needed,
                  fits_today ? "retry when one has ended" : "the next day begins at 00:00 UTC",
                  raise_with(owner, "--tokens-per-day", limited.is_of_cell)));
}

void RateAllowances::give_back(const RateOwner& owner, const RateReturn& returned) {
  const auto found = limited_.find(owner);
  if (found == limited_.end()) return;
  Limited& limited = found->second;
  if (limited.most_per_request > 0) limited.tokens.add(returned.unused_tokens);
  limited.held_tokens -= std::min(limited.held_tokens, returned.held_tokens);
  limited.requests_here -= std::min(limited.requests_here, returned.ended);
}

}  // namespace leasehold
