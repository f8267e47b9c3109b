/// Decides whether a request fits the model's context and its tenant's blocks.
///
/// Pure: it reads the limits and the quotas, and keeps no state. Threads: one (the engine's).
#pragma once

#include <cstdint>

#include "common/result.hpp"
#include "worker/schedule/scheduler_types.hpp"
#include "worker/schedule/tenancies.hpp"

namespace leasehold {

class RequestFit {
 public:
  RequestFit(const SchedulerLimits& limits, const Tenancies& tenancies)
      : limits_(limits), tenancies_(tenancies) {}

  /// Errors: BadRequest (empty prompt, token count, sampling), PromptTooLong, and those of
  /// `check_blocks`. Precondition: the request's lease is known.
  Result<void> check(const PromptRequest& request) const;
  /// Errors: QuotaBlocks, with `retry_after_ms` when the blocks are held by the tenant's leases on
  /// other workers, without it when the request can never have them.
  Result<void> check_blocks(const PromptRequest& request) const;
  /// Lowers the token limit of a request with `may_shorten` (Scheduler::shorten).
  void shorten(PromptRequest& request, std::uint64_t most_tokens) const;
  /// The most positions that the request can fill.
  std::uint64_t most_positions(const PromptRequest& request) const;

 private:
  const SchedulerLimits& limits_;
  const Tenancies& tenancies_;
};

}  // namespace leasehold
