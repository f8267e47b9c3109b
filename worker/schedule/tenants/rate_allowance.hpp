/// Limits the use of tenants, and of their API keys, on this worker: tokens and requests per
/// minute, tokens per day, and the requests of a key that run or wait.
///
/// An accepted request takes its demand from the allowances at once: one request, and the most
/// tokens that it may use. Unused tokens are returned when the request ends, and tokens of cached
/// prompt blocks when it is admitted. So over any time t a tenant uses at most one minute's tokens
/// + its limit · t, and the allowance goes below zero in two cases only, by less than one minute's
/// tokens of the tenant:
///
///   - A request without its own token limit is accepted when the allowance holds its prompt and
///     one token. It takes as much as the allowance can ever hold, because its length is unknown.
///   - The limit is divided among workers, and the request demands more than this worker's part:
///     the request is accepted when the allowance is full.
///
/// Time refills a negative allowance like any other. A request that demands more than a minute's
/// tokens of the tenant can never be accepted, and is refused without a retry time.
///
/// The broker counts the tokens of a day, from usage records, and sends what is left. Until it
/// sends the next figure, the tokens that running requests needed to be accepted are held against
/// it. Only two kinds of requests exceed the limit of the day: those without a token limit of their
/// own (those of /v1/messages count as such), and those that are accepted between the end of
/// another one and the arrival of its usage record.
///
/// A rebind pays for the rows that it computes again, because the worker cannot check that it is
/// one. It is not a new request, but an owner with a limit of requests per minute may start that
/// many rebinds a minute, and at least 60: each further one counts as a new request. Rows that are
/// computed again after a preemption cost nothing. Requests that were accepted while their owner
/// had no limit cost nothing.
///
/// Pure: time is an argument, and arithmetic is exact. Threads: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/clock.hpp"
#include "common/result.hpp"
#include "ipc/control/messages/worker.hpp"
#include "worker/schedule/tenants/rate_owner.hpp"

namespace leasehold {

/// The allowance of one limit per minute, in tokens or requests. It starts empty and holds at most
/// the limit.
class RateAllowance {
 public:
  explicit RateAllowance(TimePoint now) : filled_(now) {}
  /// Returns an allowance that starts full.
  static RateAllowance full(std::uint32_t per_minute, TimePoint now);

  /// Keeps the balance, up to the new limit. A limit of 0 stops the refill and keeps the balance.
  void set_limit(std::uint32_t per_minute, TimePoint now);
  std::uint32_t limit() const { return limit_; }
  /// Adds to the balance, up to the limit. Without a limit, adds the whole amount.
  void add(std::uint64_t amount);
  /// Gives up a positive balance. A debt stays.
  void give_up() { balance_ = std::min<std::int64_t>(balance_, 0); }
  /// Takes the amount even if the balance becomes negative.
  void charge(std::uint64_t amount, TimePoint now);
  /// Time until the balance reaches this amount; zero if it has. The result also holds for amounts
  /// above the capacity, as if the balance grew without bound. Precondition: a limit is set.
  Duration wait_for(std::uint64_t amount, TimePoint now);

 private:
  void fill(TimePoint now);
  std::int64_t capacity() const;

  std::uint32_t limit_ = 0;
  std::int64_t balance_ = 0;  // in fractions of a unit: each nanosecond adds `limit_` of them
  TimePoint filled_;
};

/// The demand of a request, prompt included.
struct RateDemand {
  std::uint64_t tokens = 0;    ///< Taken when the request is accepted.
  std::uint64_t needed = 0;    ///< The part of `tokens` that the allowances must hold.
  bool is_new_request = true;  ///< False for a rebind.
};

class RateAllowances {
 public:
  /// Sets the limits of the tenant and of its keys. A withdrawn quota stops the refill and keeps
  /// the balances, positive or negative. An owner without limits loses its entry. Other entries
  /// stay; the broker's admission of tenants bounds their number.
  void set_quota(const wire::TenantQuota& quota, TimePoint now);
  /// True if the tenant or the key has a limit.
  bool is_limited(const TenantId& tenant, const ApiKeyId& key) const;
  /// The most tokens that a request of the owners may demand; nothing without a limit.
  std::optional<std::uint64_t> most_per_request(const TenantId& tenant, const ApiKeyId& key) const;
  /// Takes a request's demand from the tenant and, unless `key` is empty, from the key. Returns the
  /// owners that have limits, to which the request later gives back. Errors, after which nothing is
  /// taken: QuotaTokens and QuotaRequests with the time until the allowance suffices for this
  /// request; QuotaConcurrent; BadRequest for more tokens than one may use in a minute or a day.
  Result<std::vector<RateOwner>> take(const TenantId& tenant, const ApiKeyId& key,
                                      const RateDemand& demand, TimePoint now);
  /// Does nothing for an owner without a limit.
  void give_back(const RateOwner& owner, const RateReturn& returned);

 private:
  struct Limited {
    RateAllowance tokens;
    RateAllowance requests;
    RateAllowance rebinds;               ///< Pays for rebinds that do not count as requests.
    std::uint64_t most_per_request = 0;  ///< 0: no limit of tokens.
    std::optional<std::uint64_t> tokens_today{};
    TimePoint day_end{};
    std::uint64_t held_tokens = 0;  ///< Tokens needed by requests that run or wait.
    std::optional<std::uint32_t> max_concurrent{};
    std::uint32_t requests_here = 0;  ///< Requests of the owner that run or wait on this worker.
    bool is_of_cell = false;          ///< See wire::TenantQuota.
    std::optional<std::uint64_t> request_day_tokens{};  ///< The most that one request may need.

    /// The allowance that pays for the start of this request. Precondition: requests are limited.
    RateAllowance& payer_of(const RateDemand& demand, TimePoint now);
  };
  void set_limits(const RateOwner& owner, const wire::RateParts& parts,
                  std::optional<std::uint32_t> max_concurrent, TimePoint now);
  static Result<void> check_size(const RateOwner& owner, const Limited& limited,
                                 const RateDemand& demand);
  static Result<void> check(const RateOwner& owner, Limited& limited, const RateDemand& demand,
                            TimePoint now);

  std::map<RateOwner, Limited> limited_;
};

}  // namespace leasehold
