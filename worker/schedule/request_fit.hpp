/// Decides whether a request fits the model's context and its tenant's blocks.
///
/// Pure: it reads the limits and the quotas, and keeps no state. Threads: one (the engine's).
#pragma once

#include <cstdint>
#include <optional>

#include "common/result.hpp"
#include "worker/schedule/scheduler_types.hpp"
#include "worker/schedule/sequence.hpp"
#include "worker/schedule/tenants/tenancies.hpp"

namespace leasehold {

class RequestFit {
 public:
  RequestFit(const SchedulerLimits& limits, const Tenancies& tenancies)
      : limits_(limits), tenancies_(tenancies) {}

  const SchedulerLimits& limits() const { return limits_; }

  /// Errors: BadRequest (empty prompt, token count, sampling), PromptTooLong, and those of
  /// `check_blocks`. Precondition: the request's lease is known.
  Result<void> check(const PromptRequest& request) const;
  /// Errors: QuotaBlocks, with `retry_after_ms` when the blocks are held by the tenant's leases on
  /// other workers, without it when the request can never have them.
  Result<void> check_blocks(const PromptRequest& request) const;
  /// Lowers the token limit of a request with `may_shorten` to `most_tokens`, prompt included, and
  /// to the capacity of the context and of the tenant's blocks; never below one token or the tokens
  /// already emitted.
  void shorten(PromptRequest& request, std::uint64_t most_tokens) const;
  /// The most positions that the request can fill.
  std::uint64_t most_positions(const PromptRequest& request) const;
  /// Why the sequence may emit no more tokens; nothing while it may. A rebound sequence may be full
  /// from the start: its last token was delivered, but its end was not.
  std::optional<CompletionReason> capacity_end(const Sequence& sequence) const;

 private:
  const SchedulerLimits& limits_;
  const Tenancies& tenancies_;
};

}  // namespace leasehold
