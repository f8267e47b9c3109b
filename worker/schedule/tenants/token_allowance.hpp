/// Limits the tokens per minute of tenants on this worker.
///
/// An accepted request takes its demand from the allowance at once: its prompt and the most tokens
/// that it may emit. Unused tokens are returned when the request ends, and tokens of cached prompt
/// blocks when it is admitted. So over any time t a tenant uses at most one minute's tokens + its
/// limit · t, and the allowance goes below zero in two cases only, by less than one minute's tokens
/// of the tenant:
///
///   - A request without its own token limit is accepted when the allowance holds its prompt and
///     one token. It takes as much as the allowance can ever hold, because its length is unknown.
///   - The limit is divided among workers, and the request demands more than this worker's part:
///     the request is accepted when the allowance is full.
///
/// Time refills a negative allowance like any other. A request that demands more than a minute's
/// tokens of the tenant can never be accepted, and is refused without a retry time.
///
/// A rebind pays for the rows that it computes again, because only the client's word makes it a
/// rebind. Rows that are computed again after a preemption cost nothing. Requests that were
/// accepted while the tenant had no limit cost nothing.
///
/// Pure: time is an argument, and arithmetic is exact. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "common/clock.hpp"
#include "common/result.hpp"
#include "ipc/control/messages/worker.hpp"

namespace leasehold {

/// The allowance of one tenant. It starts empty and holds at most one minute's tokens.
class TokenAllowance {
 public:
  explicit TokenAllowance(TimePoint now) : filled_(now) {}

  /// Keeps the balance, up to the new limit. 0: stops the refill and keeps the whole balance.
  void set_limit(std::uint32_t tokens_per_minute, TimePoint now);
  std::uint32_t limit() const { return limit_; }
  /// Adds tokens, up to one minute's; without a limit, all of them.
  void add(std::uint64_t tokens);
  /// Takes tokens even if the balance becomes negative.
  void charge(std::uint64_t tokens, TimePoint now);
  /// Time until the balance reaches this many tokens; zero if it has. The result also holds for
  /// amounts above the capacity, as if the balance grew without bound. Precondition: a limit is
  /// set.
  Duration wait_for(std::uint64_t tokens, TimePoint now);

 private:
  void fill(TimePoint now);
  std::int64_t capacity() const;

  std::uint32_t limit_ = 0;
  std::int64_t balance_ = 0;  // in fractions of a token: each nanosecond adds `limit_` of them
  TimePoint filled_;
};

/// The demand of a request, prompt included.
struct TokenDemand {
  std::uint64_t tokens = 0;  ///< Taken when the request is accepted.
  std::uint64_t needed = 0;  ///< The part of `tokens` that the allowance must hold.
};

class TokenAllowances {
 public:
  /// A withdrawn quota stops the refill and keeps the balance, positive or negative. A quota
  /// without a token limit removes the tenant's entry. Other entries stay; the broker's admission
  /// of tenants bounds their number.
  void set_quota(const wire::TenantQuota& quota, TimePoint now);
  /// The most tokens that a request of the tenant may demand; nothing without a limit.
  std::optional<std::uint32_t> most_per_request(const TenantId& tenant) const;
  /// Takes a request's demand; takes nothing for a tenant without a limit. Errors, after which
  /// nothing is taken: QuotaTokens with the time until the allowance suffices for this request;
  /// BadRequest for more than the tenant may use in a minute.
  Result<void> take(const TenantId& tenant, const TokenDemand& demand, TimePoint now);
  /// Returns tokens that a request took and did not use. Does nothing for a tenant without a limit.
  void give_back(const TenantId& tenant, std::uint64_t tokens);

 private:
  struct Limited {
    TokenAllowance allowance;
    std::uint32_t most_per_request = 0;
  };
  const Limited* find(const TenantId& tenant) const;

  std::map<TenantId, Limited> limited_;
};

}  // namespace leasehold
