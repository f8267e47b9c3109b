/// Decides whether a request is queued, before the scheduler does: checks its lease and tokens,
/// lets it wait for its adapter, takes its demand from the allowances of its tenant and API key,
/// and lets requests wait while a part of the weights is revoked.
///
/// Invariant: tokens are taken after all other checks, so a request that can never run is not asked
/// to wait. Unused tokens return to the allowance before it is read.
///
/// Threads: one (the engine's).
#pragma once

#include <utility>

#include "common/fair_bounded_queue.hpp"
#include "worker/engine/adapter_waits.hpp"
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
  /// Called once, with the adapter under which the request runs, or with null for the base model.
  using OnQueued = std::move_only_function<void(Result<AdapterUse>)>;

  Submissions(std::uint32_t n_vocab, const Dependencies& dependencies)
      : n_vocab_(n_vocab),
        deps_(dependencies),
        adapter_waits_({.scheduler = dependencies.scheduler,
                        .weights = dependencies.weights,
                        .leases = dependencies.leases,
                        .clock = dependencies.clock}) {}

  /// The requests whose adapter is being loaded; gets the source of adapters.
  AdapterWaits& adapter_waits() { return adapter_waits_; }
  const AdapterWaits& adapter_waits() const { return adapter_waits_; }

  /// Sets the quota of the tenant here and in the scheduler.
  void set_quota(const wire::TenantQuota& quota);
  /// Calls Scheduler::set_queue_limits.
  void set_queue_limits(std::uint32_t max_waiting, std::uint32_t max_waiting_per_lease) {
    deps_.scheduler->set_queue_limits(max_waiting, max_waiting_per_lease);
  }
  /// Lowers the token limit of a request with `may_shorten` to the most that the context, the
  /// tenant's max_blocks and its tokens per minute can ever allow. Called before `submit`.
  void shorten(PromptRequest& request) const;
  /// Queues a request for the base model. Errors: those of Engine::submit.
  Result<void> submit(PromptRequest request);
  /// Queues the request once the adapter that it may name is loaded. Calls `on_queued` once: before
  /// it returns, or between two steps. Errors, in `on_queued`: those of Engine::submit and of
  /// AdapterWaits::wait.
  void submit(PromptRequest request, OnQueued on_queued);
  /// Called when a text is to be filled.
  void note_arrival() { has_arrived_ = true; }
  /// True if `note_arrival` was called since the last call, or a request that may be queued was
  /// submitted, even if it was refused because the weights are revoked.
  bool take_arrival() { return std::exchange(has_arrived_, false); }

 private:
  Result<void> check_usable(const PromptRequest& request) const;
  void submit_with_adapter(PromptRequest request, OnQueued on_queued);
  Result<void> queue(PromptRequest request);
  Result<void> take_allowance(PromptRequest& request);
  void take_returned();
  ApiKeyId key_of(const PromptRequest& request) const;

  std::uint32_t n_vocab_;
  Dependencies deps_;
  AdapterWaits adapter_waits_;
  RateAllowances allowances_;
  bool has_arrived_ = false;
  /// Rebinds refused with EngineLeaseFenced and not queued since. Clients that never submit again
  /// fill it; when it is full, the oldest entry of the tenant with the most entries is dropped, and
  /// that rebind is refused a second time.
  FairBoundedQueue<TenantId, RequestId> refused_rebinds_{1024};
};

}  // namespace leasehold
