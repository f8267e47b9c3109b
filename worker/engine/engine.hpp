/// The engine: schedule → forward → sample → commit, one step at a time.
///
/// What a revocation does, by scope:
///   tenant   the sequences of that lease end with Revoked at the unit that saw it, told through
///            the RevocationObserver at that moment; every other sequence of the step is committed
///   engine   the step fails whole with EngineDecodeFailed and nothing moves; from then on every
///            step is refused with MissingWeight before any unit starts, until each part of the
///            weights that is down was restored under a fresh lease; sequences are still there and
///            go on
///
/// The read of the lease words in the Commit unit is the point of decision for every token: a flip
/// before it discards the token, a flip after it lets exactly that token out.
///
/// Ownership: the engine owns scheduler, KV memory bookkeeping and weights; everything in
/// `Dependencies` outlives it. Threads: all calls from one thread, except those of RunningRequests.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "common/clock.hpp"
#include "ipc/control/events.hpp"
#include "ipc/segment/thread_gate.hpp"
#include "worker/engine/running_requests.hpp"
#include "worker/engine/step_batch.hpp"
#include "worker/engine/step_refusals.hpp"
#include "worker/kv/lease_memory.hpp"
#include "worker/model/transformer.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

struct EngineConfig {
  ModelConfig model;
  KvType kv_type = KvType::F16;
  SchedulerLimits limits;  ///< max_context and those about records are filled in.
};

/// What one step did.
struct StepReport {
  bool ran = false;  ///< False: nothing to run; wait for an event.
  std::vector<SchedulerEvent> events;
  events::BatchedDecodeStep summary;  ///< When `ran`.
  TimePoint decided_at;               ///< When `ran`: just before the words were read once more.
};

class Engine {
 public:
  struct Dependencies {
    Backend* backend = nullptr;
    const TableReader* table = nullptr;
    RunningRequests* running_requests = nullptr;
    ThreadGate* commit_gate = nullptr;  ///< A gate of the engine thread's own.
    RevocationObserver* observer = nullptr;
    const Clock* clock = nullptr;
    /// True while no broker could renew a lease. Null: there always is one.
    const std::atomic<bool>* broker_disconnected = nullptr;
    const Tokenizer* tokenizer = nullptr;
  };
  Engine(const EngineConfig& config, const Dependencies& dependencies);

  /// What the backend of such an engine must be ready for.
  static BackendLimits backend_limits(const ModelConfig& model, const SchedulerLimits& limits);

  // ---- weights

  /// Once, before anything else is asked of the engine.
  void bind_weights(Weights weights) { weights_.emplace(std::move(weights)); }
  /// To restore parts that are down. Precondition: bound.
  Weights& weights() { return *weights_; }
  /// True once the lease of any part of the weights says no; asks the lease words, runs nothing.
  bool is_fenced() const { return weights_ && weights_->first_revoked_part(); }

  // ---- leases

  std::uint64_t kv_block_size_bytes() const { return memory_.block_size_bytes(); }
  void add_lease(TenancyConfig config) { scheduler_.add_lease(std::move(config)); }
  void set_quota(LeaseId lease, std::uint32_t max_concurrent, std::uint32_t max_blocks) {
    scheduler_.set_quota(lease, max_concurrent, max_blocks);
  }
  /// Unmaps a fenced lease, a tenant's or a part's, at once; any thread once weights are bound,
  /// also during a step: after the fence no unit touches that memory. False when nothing of it is
  /// mapped. `drop_lease` follows between steps.
  bool unmap_fenced(LeaseId lease) {
    return memory_.drop(lease) || (weights_ && weights_->unmap(lease));
  }
  /// An extent that is there already is left as it is.
  void add_extent(LeaseId lease, ExtentId extent, LeasedMapping mapping);
  /// Ends what still runs under the lease and unmaps it; a tenant's or a part's.
  void drop_lease(LeaseId lease);
  std::vector<ExtentId> reclaim_extents(LeaseId lease, std::uint32_t count);
  void deny_growth(LeaseId lease) { scheduler_.deny_growth(lease); }

  // ---- requests

  /// Errors: those of Scheduler::submit, LeaseRevoked, LeaseFenced, Draining, MissingWeight;
  /// BadRequest for tokens of another vocabulary, and for emitted ones that are not of the grammar.
  Result<void> submit(PromptRequest request);
  Result<void> cancel(const RequestId& engine_request_id) {
    return scheduler_.cancel(engine_request_id);
  }

  // ---- the step

  /// Errors: EngineDecodeFailed and MissingWeight, both naming the part of the weights that is
  /// down; NoModelLoaded; DeviceFault and whatever else the backend's fault is, for good. Events
  /// that belong to a failed step come with the next report.
  Result<StepReport> step();

  /// Why the device computes nothing any more; nothing while it does.
  std::optional<Error> device_fault() const { return deps_.backend->fault(); }

  /// Ends every request, for when the engine cannot go on.
  void end_all(const Error& error);
  std::vector<SchedulerEvent> take_events() { return scheduler_.take_events(); }
  std::vector<GrowthRequest> take_growth_requests() { return scheduler_.take_growth_requests(); }
  const Scheduler& scheduler() const { return scheduler_; }
  /// Logits of `request` in the step just run. Empty when it had none, and after a step in which
  /// anybody died: then all scratch is forgotten.
  std::span<const float> last_logits(const RequestId& engine_request_id) const;

 private:
  Result<void> check_weights() const;
  void end_revoked_leases();
  void report_found_revoked(LeaseId lease);
  void end_stopped_sequences();
  bool is_draining(LeaseId lease) const;
  void reject_draining();
  void publish_running_requests();
  void add_parts(StepPlan& plan, StepBatch& batch);
  void sample_all(const StepPlan& plan, const StepBatch& batch, SequenceMask live);
  Result<void> check_device() const;
  Result<DrawnToken> draw(Sequence& sequence, std::uint32_t logit_row);
  Result<SampledToken> sample_row(std::uint32_t logit_row, SampleInput input);
  Result<TokenRules*> rules_of(Sequence& sequence) const;
  std::optional<TokenId> next_token(std::uint32_t part) const;
  SequenceMask decide(const StepPlan& plan, const StepBatch& batch);
  /// Returns the positions each committed sequence has in its cache now.
  void commit(const StepPlan& plan, const StepRefusals& refusals, SequenceMask live,
              events::BatchedDecodeStep& summary);
  void end_refused(const StepPlan& plan, const StepRefusals& refusals);
  void scrub_scratch();
  void commit_part(const PlannedRows& part, std::uint32_t index);
  /// How requests of this lease end now; nothing while it may be used.
  std::optional<Completed> completion_for(LeaseId lease) const;

  EngineConfig config_;
  Dependencies deps_;
  Transformer transformer_;
  LeaseMemory memory_;
  Scheduler scheduler_;
  std::optional<Weights> weights_;
  std::uint64_t step_ = 0;
  std::vector<std::optional<Result<DrawnToken>>> drawn_;  // per part of the running step
  SamplerScratch sampler_scratch_;
  RecordPieces record_pieces_;
  std::map<RequestId, std::uint32_t> last_logits_;
};

}  // namespace leasehold
