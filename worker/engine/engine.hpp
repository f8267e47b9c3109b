/// The engine: admit → masks → plan → transfers → forward → sample → commit, one step at a time.
///
/// Transfers copy the blocks of sequences that the plan swaps out and in. Each piece is a unit that
/// polls. With a spill file, transfers also copy blocks to and from staging, which the SpillQueue's
/// thread seals into the file and opens; no step waits for it. A transfer that a revoked part of
/// the weights interrupts is made again by the next step.
///
/// A grammar is a tenant's program, so its work is counted and bounded. The mask of a sequence's
/// next token is computed before the step is planned, in slices; each slice is a unit that polls.
/// A sequence whose mask is not ready when the step's part of this work is used up is left out of
/// the step, or draws nothing in it, and continues in the next. MaskTurns shares the work by
/// tenant.
///
/// With `SchedulerLimits::speculate` a Proposer says which tokens may follow a text that decodes:
/// NgramProposer from the text itself, DraftProposer with a smaller model, whose units have the
/// gates of its own leases and of the sequences.
/// The step computes a row for each that the scheduler has room for, and draws from one row after
/// the other as long as the drawn token is the proposed one. So the tokens are those of single
/// steps: a row's logits do not depend on the rows beside it, and a draw depends on the text before
/// it. Rows behind the first other token are not committed, and later steps overwrite them.
///
/// Effect of a revocation, by scope of the lease:
///   tenant   The sequences of that lease end with Revoked. The unit that reads the revoked word
///            reports it through the RevocationObserver at once. Every other sequence of the step
///            is committed.
///   shared   The same for the sequences that read its text.
///   engine   The step fails with EngineDecodeFailed and no sequence moves. Every later step fails
///            with WeightsLoading before a unit starts, until each revoked part of the weights is
///            restored under a new lease. The sequences stay and then continue; new requests wait.
///
/// The Commit unit reads the lease words once more, and that read decides every token. If a word
/// is stored before the read, the token is discarded; if after, exactly that token is still sent.
///
/// Ownership: the engine owns scheduler, KV memory bookkeeping and weights; everything in
/// `Dependencies` outlives it. Threads: one, except where a member says otherwise.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/clock.hpp"
#include "common/owned_queue.hpp"
#include "ipc/control/events.hpp"
#include "ipc/segment/thread_gate.hpp"
#include "worker/engine/mask_turns.hpp"
#include "worker/engine/move_pauses.hpp"
#include "worker/engine/proposer.hpp"
#include "worker/engine/running_requests.hpp"
#include "worker/engine/step_batch.hpp"
#include "worker/engine/step_refusals.hpp"
#include "worker/engine/step_sampler.hpp"
#include "worker/engine/token_drawer.hpp"
#include "worker/kv/eviction_listener.hpp"
#include "worker/kv/lease_memory.hpp"
#include "worker/kv/lease_seals.hpp"
#include "worker/model/transformer.hpp"
#include "worker/schedule/scheduler.hpp"
#include "worker/schedule/token_allowance.hpp"

namespace leasehold {

struct EngineConfig {
  ModelConfig model;
  KvType kv_type = KvType::F16;
  /// The engine sets max_context, tokens_per_block, record_blocks and block_size_bytes.
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
    ThreadGate* engine_gate = nullptr;  ///< Of the engine thread alone.
    RevocationObserver* observer = nullptr;
    const Clock* clock = nullptr;
    /// True while the broker is disconnected and cannot renew a lease.
    const std::atomic<bool>* broker_disconnected = nullptr;
    const Tokenizer* tokenizer = nullptr;
    StepSampler* sampler = nullptr;                   ///< Null: no step is sampled.
    KvEvictionListener* eviction_listener = nullptr;  ///< Null: no index outside the worker.
    /// While tokens are speculated. Null: NgramProposer.
    std::shared_ptr<Proposer> proposer = {};
  };
  Engine(const EngineConfig& config, const Dependencies& dependencies);
  Engine(const Engine&) = delete;  // its parts point to each other
  Engine& operator=(const Engine&) = delete;

  /// The limits that the backend of such an engine must support.
  static BackendLimits backend_limits(const ModelConfig& model, const SchedulerLimits& limits);

  // ---- weights

  /// Precondition: called once, before the first step; `prepare_steps` follows.
  void bind_weights(Weights weights) { weights_.emplace(std::move(weights)); }
  /// Lets the backend prepare for these weights. Call between steps after weights were bound or
  /// all of them restored; without it the first steps take longer. Returns the number of prepared
  /// shapes of steps, 0 while a part is revoked.
  std::size_t prepare_steps();
  /// For restoring revoked parts. Precondition: bound.
  Weights& weights() { return *weights_; }
  /// A part of the weights that is revoked, if any. Reads the lease words, runs nothing.
  std::optional<std::size_t> revoked_part() const {
    return weights_ ? weights_->first_revoked_part() : std::nullopt;
  }
  TimePoint now() const { return deps_.clock->now(); }

  /// Lends a spill file. Both outlive the engine, and answers wake its loop. Without one nothing
  /// is spilled. Precondition: called once, before the first lease.
  /// The store says how many slots and buffers there are.
  void lend_spill(SpillStore& store, SpillQueue& queue, SpillLimits limits = {});

  // ---- leases

  std::uint64_t kv_block_size_bytes() const { return memory_.block_size_bytes(); }
  void add_lease(Tenancy tenancy) { scheduler_.add_lease(std::move(tenancy)); }
  void set_quota(const wire::TenantQuota& quota);
  /// Unmaps all memory under this lease, of a tenant, of a part of the weights or of the proposer.
  /// Precondition: the lease is fenced (any thread once weights are bound, also during a step), or
  /// it is revoked and the caller is the engine's thread outside a unit. Returns false if nothing
  /// of it is mapped. Also forgets the key of what the lease spilled, and clears what it has in
  /// staging. `drop_lease` follows between steps.
  bool unmap_lease(LeaseId lease) {
    seals_.forget(lease);
    if (spill_store_ != nullptr) spill_store_->forget(lease);
    // A draft model may share the lease of the weights.
    const bool is_proposers = proposer_ && proposer_->unmap(lease);
    return memory_.drop(lease) || (weights_ && weights_->unmap(lease)) || is_proposers;
  }
  /// Does nothing for an extent that is mapped already.
  void add_extent(LeaseId lease, ExtentId extent, LeasedMapping mapping,
                  wire::MemoryPool pool = wire::MemoryPool::Kv);
  /// What `adopt` found.
  struct Adopted {
    std::uint32_t records = 0;
    std::uint32_t blocks = 0;
    std::vector<Error> dropped;  ///< FileCorrupt: a wrong record; LeaseRevoked, LeaseFenced.
  };
  /// Looks for sequence records in the memory of a new lease, caches what they say, and clears
  /// them. The memory is that of the same tenant's lease on a worker that died. Precondition: the
  /// lease has run no request, and its memory is host memory.
  Adopted adopt(LeaseId lease);
  /// Ends what still runs under the lease and unmaps it.
  void drop_lease(LeaseId lease);
  std::vector<ExtentId> reclaim_extents(LeaseId lease, std::uint32_t count,
                                        wire::MemoryPool pool = wire::MemoryPool::Kv);
  void deny_growth(const GrowthRequest& refused, Errc why = Errc::PoolExhausted) {
    scheduler_.deny_growth(refused, why);
  }
  /// The draining leases under which no request runs or waits, each once until `repeat_drained`. No
  /// request is accepted under them any more: `submit` reads the drain word on this same thread,
  /// and a word that this thread saw set stays set for it.
  std::vector<LeaseId> take_drained();
  void repeat_drained() { drained_.clear(); }

  // ---- requests

  /// Lowers the token limit of a request that `may_shorten` to what the context, the tenant's
  /// max_blocks and its tokens per minute can ever hold. Called before `submit`.
  void shorten(PromptRequest& request) const;
  /// Queues a request. While a part of the weights is revoked it waits in the same queue: beyond
  /// the queue's bounds the error is WeightsLoading, and a rebind is refused with EngineLeaseFenced
  /// once, so that the client learns of the recovery. The same rebind submitted again waits, or is
  /// refused for another reason until it is queued.
  /// Errors: also those of Scheduler::submit and of TokenAllowances::take, LeaseRevoked,
  /// LeaseFenced, Draining, NoModelLoaded; BadRequest for tokens outside the vocabulary. A request
  /// whose emitted tokens do not fit its grammar is queued, and ends with BadRequest when the
  /// engine has read them.
  Result<void> submit(PromptRequest request);
  Result<void> cancel(const RequestId& engine_request_id);
  /// Moves a running request to another live lease of its tenant, between two steps: copies its
  /// blocks in units that poll both leases. All or nothing: with an error the request goes on where
  /// it is, unless its own lease has ended. Returns the number of copied blocks. `called_at` is
  /// when the client asked. Errors: those of Scheduler::begin_move, QueueFull with the time until
  /// the tenant's copies have taken less than a twentieth of the time, LeaseRevoked, LeaseFenced,
  /// Draining (the new lease), LeaseRevoked (the old one), Draining (the request is being stopped),
  /// the device's fault.
  Result<std::uint32_t> move(const RequestId& engine_request_id, LeaseId to, TimePoint called_at);
  /// Computes a text in a shared lease; `take_filled` returns the end. Precondition: the tokens are
  /// in the vocabulary. Errors: those of Scheduler::fill and `check_weights`, LeaseRevoked.
  Result<void> fill(LeaseId lease, std::vector<TokenId> text);
  std::vector<PrefixFilled> take_filled() { return scheduler_.take_filled(); }

  // ---- the step

  /// Ends what was revoked, expired or stopped since the last step; no unit runs. Called before
  /// each step, and its events taken before it, so that no typed end waits for a forward pass.
  void end_stopped();
  /// Plans, computes and commits one step. What is revoked or stopped after `end_stopped` ends at
  /// the poll of its first unit. Errors:
  /// EngineDecodeFailed and WeightsLoading, both naming the revoked part of the weights;
  /// NoModelLoaded; the backend's fault, which is final. Events of a failed step come with the next
  /// report.
  Result<StepReport> step();

  /// The final fault of the device; nothing while it works.
  std::optional<Error> device_fault() const { return deps_.backend->fault(); }

  /// As Scheduler::set_queue_limits.
  void set_queue_limits(std::uint32_t max_waiting, std::uint32_t max_waiting_per_lease) {
    scheduler_.set_queue_limits(max_waiting, max_waiting_per_lease);
  }

  /// Ends every request with this error.
  void end_all(const Error& error);
  std::vector<SchedulerEvent> take_events() { return scheduler_.take_events(); }
  /// Reports to the eviction listener what changed since the last call. `step` calls it before the
  /// first unit, whose poll may end a request, so that each hold precedes the end.
  void report_kv_changes();
  std::vector<GrowthRequest> take_growth_requests() { return scheduler_.take_growth_requests(); }
  std::vector<wire::TenantUsage> take_usage() { return scheduler_.take_usage(); }
  std::vector<wire::TenantServed> take_served() { return scheduler_.take_served(); }
  const Scheduler& scheduler() const { return scheduler_; }
  /// Logits of a request in the last step. Empty when it had none, and after all scratch was
  /// scrubbed, because a sequence was revoked, stopped or cancelled or a lease ended.
  std::span<const float> last_logits(const RequestId& engine_request_id) const;

 private:
  Result<void> check_weights() const;
  Result<void> check_usable(LeaseId lease) const;
  Result<void> copy_blocks(const Move& move);
  Result<std::vector<LeasedCopy>> addresses_of(const Move& move) const;
  Result<void> queue(PromptRequest request);
  Result<void> take_tokens(PromptRequest& request);
  void give_back_tokens();
  void end_revoked_leases();
  void report_found_revoked(LeaseId lease);
  void end_stopped_sequences();
  bool is_draining(LeaseId lease) const;
  void publish_running_requests();
  using PartErrors = std::map<std::uint32_t, Error>;  // by part of the plan
  Result<void> prepare_masks(StepReport& report);
  bool mark_awaiting_masks();
  bool can_draw(const Sequence& sequence) const;
  void add_gates(StepPlan& plan, GateSet& gates);
  MaskTurns mask_turns(const StepPlan& plan) const;
  PartErrors run_mask_turns(const StepPlan& plan, const GateSet& gates, StepReport& report);
  static std::uint64_t seal_layout(const KvLayout& layout);
  Result<void> make_transfers(StepPlan& plan);
  StepPlan sequences_beside_transfers() const;
  PartErrors run_transfers(const StepPlan& beside, const GateSet& gates);
  Result<std::vector<LeasedCopy>> addresses_of(const SwapTransfer& transfer) const;
  Result<Leased<std::byte>> address_of(LeaseId lease, BlockId block) const;
  void clear_released_records();
  /// Runs one unit beside the steps. False when the lease is not live, and then it did not run.
  template <class Unit>
  bool run_for(LeaseId lease, Unit&& unit);
  Result<std::vector<std::byte>> read_leased(LeaseId lease, std::span<const BlockId> blocks,
                                             std::uint64_t bytes_per_block);
  Result<void> take_record(LeaseId lease, BlockId first, AdoptedRecords& into);
  bool clear_records(LeaseId lease, std::span<const BlockId> first_blocks);
  std::vector<BlockId> find_records(LeaseId lease);
  void take_spill_answers();
  void post_spill_jobs();
  void add_parts(StepPlan& plan, StepBatch& batch);
  void end_unplaced(Sequence& sequence, const Error& error);
  Result<void> check_device() const;
  void propose();
  void propose_gated(StepPlan& plan);
  void propose_for(const StepPlan& plan, const GateSet* gates);
  SequenceMask decide(const StepPlan& plan, const StepBatch& batch);
  bool wants_sample(TimePoint now) const {
    return deps_.sampler != nullptr && deps_.sampler->is_due(now);
  }
  /// Commits the live sequences and adds them to the report.
  void commit(const StepPlan& plan, const StepRefusals& refusals, SequenceMask live,
              StepReport& report);
  void finish_sample(StepSample& sample, const StepReport& report, TimePoint began) const;
  void end_refused(const StepPlan& plan, const StepRefusals& refusals);
  void scrub_scratch();
  void commit_part(const PlannedRows& part, std::uint32_t index);
  /// How requests of this lease end now; nothing while the lease is usable.
  std::optional<Completed> completion_for(LeaseId lease) const;

  EngineConfig config_;
  Dependencies deps_;
  Transformer transformer_;
  LeaseMemory memory_;
  LeaseSeals seals_;
  SpillStore* spill_store_ = nullptr;
  SpillQueue* spill_queue_ = nullptr;
  Scheduler scheduler_;
  TokenAllowances token_allowances_;
  std::optional<Weights> weights_;
  std::shared_ptr<Proposer> proposer_;  // null: nothing is proposed
  /// Refused with EngineLeaseFenced and not queued since. Beyond the bound, which clients reach
  /// that do not submit again, the tenant with the most gets that error twice for its oldest.
  OwnedQueue<TenantId, RequestId> refused_rebinds_{1024};
  std::uint64_t step_ = 0;
  TenantId last_mask_tenant_;
  MovePauses move_pauses_;
  std::set<LeaseId> drained_;  // taken with `take_drained`
  TokenDrawer drawer_;
  RecordPieces record_pieces_;
};

}  // namespace leasehold
