/// The tokens that tenants with a limit may use on this worker.
///
/// A request is accepted while the allowance covers its prompt. What the engine then computes of
/// prompts and emits is charged when it is committed; what is accepted always runs to its end. So
/// emitted tokens may take the allowance below zero, and nothing is accepted until the time has
/// filled it again. Over any time t a tenant uses at most one minute's tokens + its limit · t +
/// what the requests that its other quotas let wait and run emit. A prompt of more than a minute's
/// tokens is accepted when the allowance is full.
///
/// Neither cached blocks of a prompt are charged, nor positions that are computed again after a
/// preemption. A rebind is charged for what it computes again, since a client says itself that a
/// request is one.
///
/// Pure: time is an argument, and arithmetic is exact. Threads: one.
#pragma once

#include <cstdint>
#include <map>

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
  /// Adds tokens, up to one minute's.
  void add(std::uint32_t tokens);
  /// Takes tokens even if they are not there.
  void charge(std::uint32_t tokens, TimePoint now);
  /// Time until this many tokens are there; zero if they are. It does not end at the capacity, so
  /// that a caller may count tokens that will be charged meanwhile. Precondition: a limit is set.
  Duration wait_for(std::uint64_t tokens, TimePoint now);

 private:
  void fill(TimePoint now);
  std::int64_t capacity() const;

  std::uint32_t limit_ = 0;
  std::int64_t balance_ = 0;  // in parts of a token: each nanosecond gains `limit_` parts
  TimePoint filled_;
};

class TokenAllowances {
 public:
  /// A withdrawn quota stops the allowance and keeps its balance, positive or negative. Entries are
  /// never removed otherwise: the broker admits tenants.
  void set_quota(const wire::TenantQuota& quota, TimePoint now);
  bool is_limited(const TenantId& tenant) const { return allowances_.contains(tenant); }
  /// `owed`: what accepted prompts of the tenant will still be charged.
  /// Errors: QuotaTokens, with the time until the allowance covers both.
  Result<void> check(const TenantId& tenant, std::uint64_t prompt_tokens, std::uint64_t owed,
                     TimePoint now);
  /// Does nothing for a tenant without a limit.
  void charge(const TenantId& tenant, std::uint32_t tokens, TimePoint now);

 private:
  std::map<TenantId, TokenAllowance> allowances_;
};

}  // namespace leasehold
