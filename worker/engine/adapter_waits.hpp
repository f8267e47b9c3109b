/// Requests whose adapter is being loaded. They are not in the scheduler's queue, so they delay no
/// other request of their lease.
///
/// They are bounded as that queue is: by --max-waiting-per-lease, and with it by the tenant's share
/// of --max-waiting.
///
/// A request waits from its submission until its adapter is loaded or cannot be, its lease ends,
/// its deadline passes, or it is cancelled. Then it is queued, or refused with an error.
///
/// Threads: one (the engine's).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "worker/engine/submissions.hpp"
#include "worker/schedule/adapter_use.hpp"

namespace leasehold {

class AdapterWaits {
 public:
  /// Called once, with the adapter under which the request runs, or with null for the base model.
  using OnQueued = std::move_only_function<void(Result<AdapterUse>)>;

  AdapterWaits(std::uint32_t n_vocab, const Submissions::Dependencies& dependencies)
      : deps_(dependencies), submissions_(n_vocab, dependencies) {}

  /// Where requests are submitted that need no adapter, or have theirs.
  Submissions& submissions() { return submissions_; }

  /// Without a service every adapter is unknown. Precondition: called once, before the first
  /// request; no answer of the service arrives after the object is destroyed.
  void lend(AdapterService& service) { service_ = &service; }
  /// Empty without a service.
  std::vector<LeaseId> leases() const {
    return service_ ? service_->leases() : std::vector<LeaseId>();
  }

  /// Queues the request once its adapter is loaded. Calls `on_queued` once: before it returns, or
  /// between two steps. Errors, in `on_queued`: those of Submissions::submit and of
  /// AdapterService::use; UnknownAdapter for a text that another version began; QuotaConcurrent and
  /// QueueFull while too many wait for adapters; TimedOut for its deadline, RequestCancelled.
  void submit(PromptRequest request, OnQueued on_queued);
  /// Returns false if no such request waits here.
  bool cancel(const RequestId& engine_request_id);
  /// Refuses the requests whose lease has ended or whose deadline has passed.
  void refuse_ended();
  void refuse_all(const Error& error);
  std::size_t size() const { return waiting_.size(); }

 private:
  struct Waiting {
    PromptRequest request;
    OnQueued on_queued;
  };
  Result<void> check_room(const PromptRequest& request) const;
  void loaded(std::uint64_t number, Result<AdapterUse> use);
  /// Refuses the requests for which `why_refused` returns an error.
  void refuse_if(
      const std::function<std::optional<Error>(const PromptRequest& request)>& why_refused);

  Submissions::Dependencies deps_;
  Submissions submissions_;
  AdapterService* service_ = nullptr;
  std::map<std::uint64_t, Waiting> waiting_;  // in the order of submission
  std::uint64_t last_number_ = 0;
};

}  // namespace leasehold
