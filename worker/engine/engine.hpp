/// The engine: admit → masks → propose → plan → transfers → forward → sample → commit, one step
/// at a time. Each stage is an object in `stages/` or `propose/`; the objects in `leases/` decide
/// what leases permit and handle what is kept in their memory.
///
/// A grammar is a tenant's program, so its work is counted and bounded (MaskPreparation). When the
/// step's budget for masks is used up, a sequence whose mask is not ready is left out of the step,
/// or draws no token in it.
///
/// With `SchedulerLimits::speculate` a Proposer proposes the next tokens of a decoding text:
/// NgramProposer takes them from the text itself, DraftProposer from a smaller model, whose units
/// poll the draft's own leases and those of the sequences.
/// The step computes a row for each proposal that the scheduler has room for, and draws from one
/// row after the other as long as the drawn token equals the proposal. The tokens are therefore the
/// same as without proposals: a row's logits do not depend on other sequences' rows, and a draw
/// depends only on the text before it. Rows after the first mismatch are not committed, and later
/// steps overwrite them. A recurrent state cannot lose the rows after a mismatch. Its sequence then
/// commits no row of the step, and the next step computes the rows of the drawn tokens again, from
/// the state before the proposals.
///
/// Effect of a revocation, by the lease's scope:
///   tenant   The sequences of that lease end with Revoked. The unit that reads the revoked lease
///            word reports it through the RevocationObserver at once. Every other sequence of the
///            step is committed.
///   shared   The same for the sequences that read the text of the shared lease.
///   adapter  The same for the sequences that read the adapter.
///   engine   The step fails with EngineDecodeFailed and no sequence advances. Every later step
///            fails with WeightsLoading before a unit starts, until each revoked part of the
///            weights is restored under a new lease. The sequences stay and then continue; new
///            requests wait.
///
/// With a spill file, transfers also copy blocks to and from staging, which the SpillQueue's thread
/// encrypts into the file and decrypts from it; no step waits for that thread.
///
/// Ownership: the engine owns scheduler, KV memory bookkeeping and weights; everything in
/// `Dependencies` outlives it. Threads: one, except where a member says otherwise.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "common/clock.hpp"
#include "ipc/control/events.hpp"
#include "ipc/segment/thread_gate.hpp"
#include "worker/engine/leases/engine_weights.hpp"
#include "worker/engine/leases/lease_checks.hpp"
#include "worker/engine/leases/leased_records.hpp"
#include "worker/engine/leases/spill_channel.hpp"
#include "worker/engine/mask_schedule.hpp"
#include "worker/engine/propose/proposals.hpp"
#include "worker/engine/request_mover.hpp"
#include "worker/engine/running_requests.hpp"
#include "worker/engine/stages/block_transfers.hpp"
#include "worker/engine/stages/mask_preparation.hpp"
#include "worker/engine/stages/model_runner.hpp"
#include "worker/engine/stages/sequence_ender.hpp"
#include "worker/engine/step_sampler.hpp"
#include "worker/engine/submissions.hpp"
#include "worker/kv/eviction_listener.hpp"
#include "worker/kv/lease_memory.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

struct EngineConfig {
  ModelConfig model;
  KvType kv_type = KvType::F16;
  /// The engine sets max_context and the sizes of blocks, records and states.
  SchedulerLimits limits;
  MaskLimits masks;
};

/// What one step did.
struct StepReport {
  bool ran = false;            ///< False: no sequence could run.
  bool awaits_masks = false;   ///< A sequence waits for its mask; the next step continues it.
  std::size_t mask_units = 0;  ///< Counted work on grammars.
  std::vector<SchedulerEvent> events;
  events::BatchedDecodeStep summary;  ///< When `ran`.
  TimePoint decided_at;               ///< When `ran`: just before the Commit unit.
  std::optional<StepSample> sample;   ///< When the sampler wants this step.
  std::vector<SpillEvent> spills;
};

class Engine {
 public:
  struct Dependencies {
    Backend* backend = nullptr;
    const TableReader* table = nullptr;
    RunningRequests* running_requests = nullptr;
    ThreadGate* engine_gate = nullptr;  ///< Used by the engine thread alone.
    RevocationObserver* observer = nullptr;
    const Clock* clock = nullptr;
    /// True while the broker is disconnected and cannot renew a lease.
    const std::atomic<bool>* broker_disconnected = nullptr;
    const Tokenizer* tokenizer = nullptr;
    StepSampler* sampler = nullptr;                   ///< Null: no step is sampled.
    KvEvictionListener* eviction_listener = nullptr;  ///< Null: no index outside the worker.
    /// Used with SchedulerLimits::speculate. Null: NgramProposer.
    std::shared_ptr<Proposer> proposer = {};
  };
  Engine(const EngineConfig& config, const Dependencies& dependencies);
  Engine(const Engine&) = delete;  // its members point to each other
  Engine& operator=(const Engine&) = delete;

  /// The limits that the backend of such an engine must support.
  static BackendLimits backend_limits(const ModelConfig& model, const SchedulerLimits& limits);

  // ---- weights

  /// Precondition: called once, before the first step; `prepare_steps` follows.
  void bind_weights(Weights weights) { weights_.bind(std::move(weights)); }
  /// Lets the backend prepare for these weights. Call it between steps, after `bind_weights` and
  /// after all revoked parts were restored; without this call the first steps take longer. Returns
  /// the number of step shapes prepared, 0 while a part is revoked.
  std::size_t prepare_steps();
  /// Which parts are revoked; used to restore them.
  EngineWeights& weights() { return weights_; }
  TimePoint now() const { return deps_.clock->now(); }

  /// Sets the spill file; without one nothing is spilled. `store` and `queue` outlive the engine,
  /// and the queue's answers wake the engine loop. The number of slots and buffers is the store's,
  /// whatever `limits` says. Precondition: called once, before the first lease.
  void lend_spill(SpillStore& store, SpillQueue& queue, SpillLimits limits = {}) {
    spills_.lend(store, queue, limits);
  }

  // ---- leases

  std::uint64_t kv_block_size_bytes() const { return memory_.block_size_bytes(); }
  void add_lease(Tenancy tenancy) { scheduler_.tenancies().add(std::move(tenancy)); }
  /// Unmaps all memory under this lease, which belongs to a tenant, a part of the weights or the
  /// proposer. Precondition: the lease is fenced (any thread once weights are bound, also during a
  /// step), or the lease is revoked and the caller is the engine's thread outside a unit. Returns
  /// false if the lease has no mapped memory. Also discards the key of the lease's spilled blocks,
  /// and clears its staging buffers. The caller then calls `drop_lease` between steps.
  bool unmap_lease(LeaseId lease) {
    spills_.forget(lease);
    // A draft model may share the lease of the weights.
    const bool is_proposers = proposals_.unmap(lease);
    return memory_.drop(lease) || weights_.unmap(lease) || is_proposers;
  }
  /// Does nothing for an extent that is mapped already.
  void add_extent(LeaseId lease, ExtentId extent, LeasedMapping mapping,
                  wire::MemoryPool pool = wire::MemoryPool::Kv);
  /// The memory of all leases. The extents of a lease of scope Adapter, which has no blocks and no
  /// requests of its own, are added here.
  LeaseMemory& memory() { return memory_; }
  using Adopted = LeasedRecords::Adopted;
  /// Finds the sequence records in the memory of a new lease, caches the prefixes that they
  /// describe, and clears the records. The same tenant's lease on a worker that died held this
  /// memory before. Precondition: the lease has run no request, and its memory is host memory.
  Adopted adopt(LeaseId lease) { return records_.adopt(lease); }
  /// Ends the requests that still run under the lease and unmaps its memory.
  void drop_lease(LeaseId lease);
  std::vector<ExtentId> reclaim_extents(LeaseId lease, std::uint32_t count,
                                        wire::MemoryPool pool = wire::MemoryPool::Kv);
  void deny_growth(const GrowthRequest& refused, Errc why = Errc::PoolExhausted) {
    scheduler_.tenancies().deny_growth(refused, why);
  }
  /// The draining leases under which no request runs or waits. Each is returned once, until
  /// `repeat_drained`. `submit` accepts no request under them any more: it reads the drain word on
  /// this same thread, and a drain word stays set.
  std::vector<LeaseId> take_drained() { return leases_.take_drained(scheduler_.tenancies()); }
  void repeat_drained() { leases_.repeat_drained(); }

  // ---- requests

  /// Requests of tenants, which may name an adapter; quotas and limits of queues; whether a request
  /// has arrived.
  Submissions& submissions() { return submissions_; }
  /// Queues a request for the base model. While a part of the weights is revoked, requests wait in
  /// the same queue, and a full queue refuses with WeightsLoading. A rebind is then first refused
  /// with EngineLeaseFenced, once, so that the client learns of the recovery; when the client
  /// submits the same rebind again, it is queued like any request. Errors: also those of
  /// Scheduler::submit and of RateAllowances::take, LeaseRevoked, LeaseFenced, Draining,
  /// NoModelLoaded; BadRequest for tokens outside the vocabulary. A request whose emitted tokens do
  /// not fit its grammar is queued, and ends with BadRequest once the engine has checked them.
  Result<void> submit(PromptRequest request) { return submissions_.submit(std::move(request)); }
  /// Errors: those of Scheduler::cancel.
  Result<void> cancel(const RequestId& engine_request_id) {
    if (submissions_.adapter_waits().cancel(engine_request_id)) return {};
    return ender_.cancel(engine_request_id);
  }
  /// True while a request waits or runs.
  bool has_work() const { return scheduler_.has_work() || submissions_.adapter_waits().size() > 0; }
  /// Calls RequestMover::move.
  Result<std::uint32_t> move(const RequestId& engine_request_id, LeaseId to, TimePoint called_at) {
    return mover_.move(engine_request_id, to, called_at);
  }
  /// Computes the prefix of a shared lease, once the adapter that may be named is loaded;
  /// `take_filled` returns the result. Errors, here or in the result: those of
  /// Scheduler::fill_request, NoModelLoaded, WeightsLoading, and those of Submissions::submit.
  Result<void> fill(LeaseId lease, std::vector<TokenId> text, RequestAdapter adapter = {});
  std::vector<PrefixFilled> take_filled() { return scheduler_.publications().take_filled(); }

  // ---- the step

  /// Ends the requests that were revoked, expired or stopped since the last step; no unit runs. The
  /// caller calls it before each step and takes its events before that step, so that no typed end
  /// waits for a forward pass.
  void end_stopped();
  /// Plans, computes and commits one step. A request that is revoked or stopped after `end_stopped`
  /// ends at the poll of its first unit. Errors:
  /// EngineDecodeFailed and WeightsLoading, both naming the revoked part of the weights;
  /// NoModelLoaded; the backend's fault, which is final. Events of a failed step come with the next
  /// report.
  Result<StepReport> step();

  /// The final fault of the device; nothing while it works.
  std::optional<Error> device_fault() const { return deps_.backend->fault(); }

  /// Ends every request with this error.
  void end_all(const Error& error) {
    scheduler_.end_all(error);
    submissions_.adapter_waits().refuse_all(error);
  }
  std::vector<SchedulerEvent> take_events() { return scheduler_.take_events(); }
  /// Reports the changes since the last call to the eviction listener. `step` calls it before the
  /// first unit, because that unit's poll may end a request, and "held" must be reported before the
  /// end.
  void report_kv_changes();
  std::vector<GrowthRequest> take_growth_requests() {
    return scheduler_.tenancies().take_growth_requests();
  }
  std::vector<wire::TenantUsage> take_usage() { return scheduler_.tenancies().take_usage(); }
  std::vector<wire::TenantServed> take_served() { return scheduler_.tenancies().take_served(); }
  const Scheduler& scheduler() const { return scheduler_; }
  /// Logits of a request in the last step. Empty when the request had none, and after all scratch
  /// was scrubbed because a sequence was revoked, stopped or cancelled or a lease ended.
  std::span<const float> last_logits(const RequestId& engine_request_id) const {
    return runner_.last_logits(engine_request_id);
  }

 private:
  void add_parts(StepPlan& plan, StepBatch& batch);
  void commit(const StepPlan& plan, SequenceMask live, StepReport& report);
  void commit_part(const PlannedRows& part, std::uint32_t index);

  Dependencies deps_;
  ModelRunner runner_;
  LeaseMemory memory_;
  Scheduler scheduler_;
  EngineWeights weights_;
  LeaseChecks leases_;
  SpillChannel spills_;
  SequenceEnder ender_;
  Proposals proposals_;
  MaskPreparation masks_;
  BlockTransfers transfers_;
  LeasedRecords records_;
  RequestMover mover_;
  Submissions submissions_;
  std::uint64_t step_ = 0;
};

}  // namespace leasehold
