/// The tokens that tenants with a limit may use on this worker.
///
/// A request takes what it asks for when it is accepted: its prompt and the most tokens that it may
/// emit. What it has not used is given back when it ends, cached blocks of its prompt when it is
/// admitted. So over any time t a tenant uses at most one minute's tokens + its limit · t, and the
/// allowance goes below zero in two cases only, by less than one minute's tokens of the tenant:
///
///   - A request without a token limit of its own is accepted while its prompt and one token are
///     there. It takes all that the allowance can hold, because its length is not known before.
///   - The limit is divided, and the request asks for more than this worker's part: it is accepted
///     when the allowance is full.
///
/// The debt is paid by time. A request that asks for more than a minute's tokens of the tenant can
/// never be accepted, and is refused without a time to wait.
///
/// A rebind takes what it computes again, since a client says itself that a request is one. What a
/// preemption computes again costs nothing. Requests that were accepted without a limit cost
/// nothing.
///
/// Pure: time is an argument, and arithmetic is exact. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "common/clock.hpp"
#include "common/result.hpp"
#include "ipc/control/messages_worker.hpp"

namespace leasehold {

/// The allowance of one tenant. It starts empty and holds at most one minute's tokens.
class TokenAllowance {
 public:
  explicit TokenAllowance(TimePoint now) : filled_(now) {}

  /// Keeps what is there, up to the new limit. 0: fills no more, and keeps everything.
  void set_limit(std::uint32_t tokens_per_minute, TimePoint now);
  std::uint32_t limit() const { return limit_; }
  /// Adds tokens, up to one minute's; without a limit, all of them.
  void add(std::uint64_t tokens);
  /// Takes tokens even if they are not there.
  void charge(std::uint64_t tokens, TimePoint now);
  /// Time until this many tokens are there; zero if they are. It does not end at the capacity.
  /// Precondition: a limit is set.
  Duration wait_for(std::uint64_t tokens, TimePoint now);

 private:
  void fill(TimePoint now);
  std::int64_t capacity() const;

  std::uint32_t limit_ = 0;
  std::int64_t balance_ = 0;  // in parts of a token: each nanosecond gains `limit_` parts
  TimePoint filled_;
};

/// What a request asks for, prompt included.
struct TokenDemand {
  std::uint64_t tokens = 0;  ///< Taken at once.
  std::uint64_t needed = 0;  ///< Of these, the tokens that must be there.
};

class TokenAllowances {
 public:
  /// A withdrawn quota stops the allowance and keeps its balance, positive or negative. Entries are
  /// never removed otherwise: the broker admits tenants.
  void set_quota(const wire::TenantQuota& quota, TimePoint now);
  /// The most tokens that a request of the tenant may ask for; nothing without a limit.
  std::optional<std::uint32_t> most_per_request(const TenantId& tenant) const;
  /// Takes what a request asks for; nothing of a tenant without a limit. Errors, with which nothing
  /// is taken: QuotaTokens, with the time until enough is there for this request; BadRequest for
  /// more than the tenant may use in a minute.
  Result<void> take(const TenantId& tenant, const TokenDemand& demand, TimePoint now);
  /// Gives back what a request took and did not use. Does nothing for a tenant without a limit.
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
