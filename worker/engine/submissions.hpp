/// Decides whether a request is queued, before the scheduler does: checks its lease and tokens,
/// takes its demand from the allowances of its tenant and API key, and lets requests wait while a
/// part of the weights is revoked.
///
/// Invariant: tokens are taken after all other checks, so a request that can never run is not asked
/// to wait. Unused tokens return to the allowance before it is read.
///
/// Threads: one (the engine's).
#pragma once

#include <utility>

#include "common/fair_bounded_queue.hpp"
#include "worker/engine/leases/engine_weights.hpp"
#include "worker/engine/leases/lease_checks.hpp"
#include "worker/schedule/scheduler.hpp"
#include "worker/schedule/tenants/rate_allowance.hpp"

namespace leasehold {

class Submissions {
 public:
  /// All of these outlive the object.
  struct Dependencies {
    Scheduler* scheduler = nullptr;
    const EngineWeights* weights = nullptr;
    const LeaseChecks* leases = nullptr;
    const Clock* clock = nullptr;
  };
  Submissions(std::uint32_t n_vocab, const Dependencies& dependencies)
      : n_vocab_(n_vocab), deps_(dependencies) {}

  /// Sets the quota of the tenant here and in the scheduler.
  void set_quota(const wire::TenantQuota& quota);
  /// Calls Scheduler::set_queue_limits.
  void set_queue_limits(std::uint32_t max_waiting, std::uint32_t max_waiting_per_lease) {
    deps_.scheduler->set_queue_limits(max_waiting, max_waiting_per_lease);
  }
  /// Lowers the token limit of a request with `may_shorten` to the most that the context, the
  /// tenant's max_blocks and its tokens per minute can ever allow. Called before `submit`.
  void shorten(PromptRequest& request) const;
  /// Errors: those of Engine::submit.
  Result<void> submit(PromptRequest request);
  /// The errors of `submit` that do not depend on the tenant's rates, for a request that is to be
  /// submitted later.
  Result<void> check(const PromptRequest& request) const;
  /// Called when a text is to be filled, or a request waits for its adapter.
  void note_arrival() { has_arrived_ = true; }
  /// True if `note_arrival` was called since the last call, or a request that may be queued was
  /// submitted, even if it was refused because the weights are revoked.
  bool take_arrival() { return std::exchange(has_arrived_, false); }

 private:
  Result<void> check_usable(const PromptRequest& request) const;
  Result<void> queue(PromptRequest request);
  Result<void> take_allowance(PromptRequest& request);
  void take_returned();
  ApiKeyId key_of(const PromptRequest& request) const;

  std::uint32_t n_vocab_;
  Dependencies deps_;
  RateAllowances allowances_;
  bool has_arrived_ = false;
  /// Rebinds refused with EngineLeaseFenced and not queued since. Clients that never submit again
  /// fill it; when it is full, the oldest entry of the tenant with the most entries is dropped, and
  /// that rebind is refused a second time.
  FairBoundedQueue<TenantId, RequestId> refused_rebinds_{1024};
};

}  // namespace leasehold
