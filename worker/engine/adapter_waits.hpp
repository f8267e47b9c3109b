/// Requests whose adapter is being loaded. They are not in the scheduler's queue, so they delay no
/// other request of their lease.
///
/// They are bounded as that queue is: by --max-waiting-per-lease, and with it by the tenant's share
/// of --max-waiting.
///
/// A request waits until its adapter is loaded or cannot be, its lease ends, its deadline passes,
/// or it is cancelled.
///
/// Threads: one (the engine's).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "worker/engine/leases/engine_weights.hpp"
#include "worker/engine/leases/lease_checks.hpp"
#include "worker/schedule/adapter_use.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

class AdapterWaits {
 public:
  /// All of these outlive the object.
  struct Dependencies {
    const Scheduler* scheduler = nullptr;
    const EngineWeights* weights = nullptr;
    const LeaseChecks* leases = nullptr;
    const Clock* clock = nullptr;
  };
  /// Called once, with the request and its adapter (RequestAdapter::use).
  using OnLoaded = std::move_only_function<void(Result<PromptRequest>)>;

  explicit AdapterWaits(const Dependencies& dependencies) : deps_(dependencies) {}

  /// Without a service every adapter is unknown. Precondition: called once, before the first
  /// request; no answer of the service arrives after the object is destroyed.
  void lend(AdapterService& service) { service_ = &service; }
  /// Empty without a service.
  std::vector<LeaseId> leases() const {
    return service_ ? service_->leases() : std::vector<LeaseId>();
  }

  /// Loads the adapter that the request names. Calls `on_loaded` once: before it returns, or
  /// between two steps. Errors, in `on_loaded`: those of AdapterService::use; UnknownAdapter for
  /// another version than the request's; QuotaConcurrent and QueueFull while too many wait;
  /// TimedOut for its deadline, RequestCancelled, and those of LeaseChecks::check_usable.
  void wait(PromptRequest request, OnLoaded on_loaded);
  /// Returns false if no such request waits here.
  bool cancel(const RequestId& engine_request_id);
  /// Refuses the requests whose lease has ended or whose deadline has passed.
  void refuse_ended();
  void refuse_all(const Error& error);
  std::size_t size() const { return waiting_.size(); }

 private:
  struct Waiting {
    PromptRequest request;
    OnLoaded on_loaded;
  };
  Result<void> check_room(const PromptRequest& request) const;
  void loaded(std::uint64_t number, Result<AdapterUse> use);
  /// Refuses the requests for which `why_refused` returns an error.
  void refuse_if(
      const std::function<std::optional<Error>(const PromptRequest& request)>& why_refused);

  Dependencies deps_;
  AdapterService* service_ = nullptr;
  std::map<std::uint64_t, Waiting> waiting_;  // in the order of submission
  std::uint64_t last_number_ = 0;
};

}  // namespace leasehold
