/// Plans which sequences run in the next step, with how many rows each.
///
/// Pure: no clock, no randomness, no memory access; time is an argument. One scheduler per engine.
///
/// A tick is `admit` → (the engine computes masks) → `plan` → (the engine runs the forward pass) →
/// `commit`. A step that fails is planned again. Decode rows come first, one per running sequence.
/// Prefill rows follow, in chunks of a block, up to the PrefillLimit and the rest of the token
/// budget. A sequence that lacks a block waits and does not delay the others. If a sequence awaits
/// its mask, only its last row waits.
///
/// Preemption: when a running sequence lacks a block that the broker or the quota refuses, one
/// sequence stops (Preemption). Its blocks move to the lease's swap pool (SwapPlanner), from there
/// to the spill file (SpillPlanner), or are freed. Its request, with its emitted tokens, goes to
/// the queue of its lease, before others of the same priority. Once there is room it is admitted
/// again: its blocks are copied back, or its rows are computed again, and it continues with its
/// next token.
///
/// Copies: the scheduler lists the copies of a step (`transfers`) and treats them as done at once:
/// it assigns the source blocks to other sequences. The engine must therefore make the copies in
/// the order of the list, before the forward pass, and report each (`transfer_done`). A failed
/// transfer stays in the list, and no sequence is admitted meanwhile.
///
/// A full committed block stays cached under its lease (PrefixIndex), and a prompt that begins with
/// the same text reuses it; KvAllocator evicts cached blocks. Publications lends published texts to
/// all tenants, and ProposalPlanner gives rows to proposed tokens. After the step a sequence frees
/// the blocks beyond its text. A tenant is charged for the rows of wrong proposals, because they
/// take as much time as right ones.
///
/// Fairness: admissions and prefill chunks go to the tenant with the least token counter
/// (TokenCounters), over all its leases; a prompt that fits in one step goes before long ones while
/// its tenant is at most token_budget ahead. An admitted prompt counts as served. So for two
/// tenants that always have runnable work, with weights v and w, the served work divided by weight
/// differs by at most (work_of_first(max_context) · (max_batch_size + 1) + token_budget) / min(v,
/// w). Work and rows are the same in a context below kContextPerRow (row_work.hpp).
///
/// Inside a tenant, Admission orders the requests. Prompts are computed in order of admission
/// (PromptRows). A priority gives no advantage over another tenant, and no running request is
/// preempted to admit one of higher priority.
///
/// Bound on waiting: with a token budget of at least `max_batch_size`, every decoding sequence that
/// has its block and its mask gets a row in every tick. A tenant below its quota has a request
/// admitted before any other active tenant has been served more than the difference above. Inside
/// its tenant a request waits for the requests before it in that order, and for blocks that
/// running requests free; only while its own lease lacks blocks are later requests of the tenant's
/// other leases admitted before it. In work: with n requests before it in its lease, and k leases
/// of its tenant, if all have blocks and requests of equal urgency, the request is admitted before
/// its tenant is served work_of_first(max_context) · ((n + 1) · k + max_batch_size) more.
///
/// Threads: one (the engine's). A request can never violate a precondition: invalid requests get
/// typed errors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ipc/control/messages/worker.hpp"
#include "worker/kv/adopted_records.hpp"
#include "worker/schedule/admission.hpp"
#include "worker/schedule/events.hpp"
#include "worker/schedule/kv_allocator.hpp"
#include "worker/schedule/pending_events.hpp"
#include "worker/schedule/preemption.hpp"
#include "worker/schedule/prefill_limit.hpp"
#include "worker/schedule/proposal_planner.hpp"
#include "worker/schedule/publications.hpp"
#include "worker/schedule/request_moves.hpp"
#include "worker/schedule/running_sequences.hpp"
#include "worker/schedule/scheduler_types.hpp"
#include "worker/schedule/sequence.hpp"
#include "worker/schedule/swap_planner.hpp"
#include "worker/schedule/tenancies.hpp"
#include "worker/schedule/transfers.hpp"
#include "worker/schedule/waiting_requests.hpp"

namespace leasehold {

class Scheduler {
 public:
  explicit Scheduler(SchedulerLimits limits) : limits_(limits) {}
  Scheduler(const Scheduler&) = delete;  // its members point to each other
  Scheduler& operator=(const Scheduler&) = delete;

  /// Changes how many requests may wait; requests that already wait stay.
  void set_queue_limits(std::uint32_t max_waiting, std::uint32_t max_waiting_per_lease) {
    limits_.max_waiting = max_waiting;
    limits_.max_waiting_per_lease = max_waiting_per_lease;
  }

  // ---- leases

  /// Adds a lease. Preconditions: it is not known yet, and has no blocks or requests.
  void add_lease(Tenancy tenancy) { tenancies_.add(std::move(tenancy)); }
  /// Sets the quota of a tenant, over all its leases here. Without a quota, or above it, no request
  /// is admitted; running requests continue within the quota under which they were admitted. A
  /// withdrawn quota is removed once the tenant has no lease here.
  void set_quota(const wire::TenantQuota& quota);
  /// The use of divided quotas by the tenants whose use changed since the last call. Examines only
  /// `Tenancies::changed_tenants`.
  std::vector<wire::TenantUsage> take_usage() { return tenancies_.take_usage(); }
  /// The service that tenants received since the last call; omits tenants without changes.
  std::vector<wire::TenantServed> take_served() { return tenancies_.take_served(); }
  void add_extent(LeaseId lease, ExtentId extent, std::uint32_t blocks);
  void add_swap_extent(LeaseId lease, ExtentId extent, std::uint32_t blocks);
  /// Records that the broker refused a GrowthRequest. For swap: until it grants swap, victims are
  /// dropped unless a spill makes room. For KV: if a running sequence lacks a block, and the
  /// request was not for more than the running sequences want, the next plan preempts one sequence
  /// of the lease, or ends it if it runs alone. If no request of the lease runs, its first waiting
  /// request is rejected. `why`: QuotaBlocks for the limit of the tenant or of published texts; any
  /// other code means an exhausted pool.
  void deny_growth(const GrowthRequest& refused, Errc why = Errc::PoolExhausted) {
    tenancies_.deny_growth(refused, why);
  }
  /// Removes up to `count` extents of a pool that no sequence uses; cached blocks in them are
  /// evicted. Removes none while transfers of the lease are pending, because their source blocks
  /// count as free.
  std::vector<ExtentId> remove_free_extents(LeaseId lease, std::uint32_t count,
                                            wire::MemoryPool pool = wire::MemoryPool::Kv);
  /// Ends with `how` every request of the lease and every request that reads its published text,
  /// and removes the lease.
  void end_lease(LeaseId lease, const Completed& how);
  bool has_lease(LeaseId lease) const { return tenancies_.contains(lease); }
  std::vector<LeaseId> leases() const { return tenancies_.ids(); }

  // ---- records in memory

  /// Caches the prefixes described by records found in the memory of a new lease. Returns the
  /// number of blocks. Precondition: the lease has run no request.
  std::uint32_t adopt(LeaseId lease, const AdoptedRecords& records);
  /// The pool against which such records are checked; null for an unknown lease.
  const BlockPool* pool_of(LeaseId lease) const;
  /// The first blocks of the records of sequences that ended or were moved out since the last call.
  /// The caller clears them before any block is written again.
  std::vector<std::pair<LeaseId, BlockId>> take_released_records();

  // ---- spill

  /// Precondition: called once, before the first lease.
  void lend_spill(const SpillLimits& limits) { swap_.spill().lend(limits); }
  /// New jobs for the spill store since the last call. Jobs that depend on copies are added by
  /// `transfer_done`.
  std::vector<SpillJob> take_spill_jobs() { return swap_.spill().take_jobs(); }
  void spill_answered(const std::vector<SpillAnswer>& answers, TimePoint now) {
    swap_.spill().answered(answers, now);
  }
  std::vector<SpillEvent> take_spill_events() { return swap_.spill().take_events(); }
  const SpillBooks& spills() const { return swap_.spill().books(); }

  // ---- requests

  /// Queues a request. Errors: LeaseFenced (unknown lease), UnknownTenant (another tenant's lease),
  /// BadRequest (empty prompt, token count, sampling, id in use), PromptTooLong, QuotaBlocks,
  /// QuotaConcurrent (this lease's queue is full), QueueFull.
  Result<void> submit(PromptRequest request);
  /// The error that `submit` would return. QuotaBlocks with `retry_after_ms` when the blocks are
  /// held by the tenant's leases on other workers, without it when the request can never have them.
  Result<void> check(const PromptRequest& request) const;
  /// Lowers the token limit of a request with `may_shorten` to `most_tokens`, prompt included, and
  /// to the capacity of the context and of the tenant's blocks; never below one token or the tokens
  /// already emitted.
  void shorten(PromptRequest& request, std::uint64_t most_tokens) const {
    admission_.fit().shorten(request, most_tokens);
  }
  /// The most positions that the request can fill.
  std::uint64_t most_positions(const PromptRequest& request) const {
    return admission_.fit().most_positions(request);
  }
  /// Tokens per minute to return, by tenant: those that requests took and did not use, since the
  /// last call.
  std::map<TenantId, std::uint64_t> take_unused_tokens() { return tenancies_.take_unused_tokens(); }
  /// Queues the fill of a shared lease: computes the full blocks of `text` and keeps them, without
  /// emitting a token. `take_filled` returns the result. Errors: LeaseFenced (no such shared
  /// lease), BadRequest (no full block, filled already), and those of `submit`.
  Result<void> fill(LeaseId lease, std::vector<TokenId> text) {
    return submit(TRY(publications_.fill_request(lease, std::move(text))));
  }
  std::vector<PrefixFilled> take_filled() { return publications_.take_filled(); }
  /// Ends a waiting or running request. Errors: UnknownRequest.
  Result<void> cancel(const RequestId& engine_request_id);

  /// Reserves blocks for a running request in another lease of its tenant. The caller makes the
  /// copies, then calls `finish_move` or `drop_move` before any other function. Errors:
  /// UnknownRequest, LeaseFenced (no such lease of the tenant), BadRequest (its own lease);
  /// QueueFull while the request waits or a transfer is pending, and PoolExhausted, after which the
  /// scheduler requests growth of the lease: the caller may retry both; QuotaBlocks.
  Result<Move> begin_move(const RequestId& engine_request_id, LeaseId to);
  /// Assigns the sequence to the new lease and frees its blocks of the old lease. Blocks cached
  /// under the old lease stay there. Emits Rebound.
  void finish_move(Move move, Duration since_call) { moves_.finish(std::move(move), since_call); }
  /// Abandons the move; the sequence stays under its lease.
  void drop_move(Move move) { moves_.drop(std::move(move)); }

  /// Ends the waiting requests whose deadline has passed; `admit` calls it.
  void drop_expired(TimePoint now) { waiting_.drop_expired(now); }

  // ---- the tick

  /// Ends expired waiting requests and admits requests that fit.
  void admit(TimePoint now);
  /// Preempts or ends sequences that lack blocks, and plans the step. Pointers in the plan stay
  /// valid while their sequence runs.
  StepPlan plan();
  /// The decoding sequences that may have proposals in the next step; `n_proposed` is the number of
  /// proposals worth a row, as far as known before the plan. Empty while a prompt is computed.
  StepPlan plan_proposals() const { return proposals_.plan(); }
  /// Records the time spent on making proposals. It is added to the cost of the next proposals that
  /// get rows.
  void note_proposing(Duration took) { proposals_.note_proposing(took); }
  /// Records the duration of the planned step, for the limits of later steps. If it is never
  /// called, prompts may fill the token budget.
  void note_duration(Duration step);

  /// The copies to make before the forward pass, in this order.
  const std::vector<SwapTransfer>& transfers() const { return transfers_.all(); }
  /// Records that the sequence's first transfer in the list was made, and its duration.
  void transfer_done(const Sequence& sequence, Duration copying);

  /// Commits the rows in PlannedRows::rows_kept, and appends the drawn tokens: the accepted
  /// proposals, then at most one more. Emits Token for each, then Completed when the sequence ends.
  /// Precondition: no transfer is pending.
  void commit(const PlannedRows& part, std::vector<DrawnToken> drawn);
  /// Ends one running or swapped sequence and frees its blocks. With `already_delivered` no
  /// Completed event is emitted, because a gate thread delivered it early.
  void end_sequence(Sequence& sequence, Completed how, bool already_delivered = false);
  /// Why the sequence may emit no more tokens; nothing while it may. A rebound sequence may be full
  /// from the start: its last token was delivered, but its end was not.
  std::optional<CompletionReason> capacity_end(const Sequence& sequence) const;

  /// Ends every waiting and running request with this error. Leases stay.
  void end_all(const Error& error);

  /// Returns all events since the last call, in the order of events.hpp.
  std::vector<SchedulerEvent> take_events() { return events_.take(); }
  std::vector<GrowthRequest> take_growth_requests() { return tenancies_.take_growth_requests(); }
  std::vector<KvChange> take_kv_changes() { return kv_.take_changes(); }

  bool has_work() const;
  std::uint32_t running_count() const { return static_cast<std::uint32_t>(running_.size()); }
  std::uint32_t waiting_count() const {
    return static_cast<std::uint32_t>(tenancies_.waiting_count());
  }
  /// Sums over all leases, including ended ones.
  PrefixCounters prefix_counters() const { return tenancies_.prefix_counters(); }
  const ProposalCounters& proposal_counters() const { return proposals_.counters(); }
  const Tenancies& tenancies() const { return tenancies_; }
  const std::vector<std::unique_ptr<Sequence>>& running() const { return running_.all(); }
  bool is_running(const Sequence* sequence) const { return running_.contains(sequence); }

 private:
  StepPlan plan_rows();
  std::uint32_t add_part(Sequence& sequence, std::uint32_t n_rows, StepPlan& plan);
  std::vector<PlannedRows> prefill_least_served(std::uint32_t budget) const;
  bool relieve_starved();
  void preempt(const Relief& relief);
  void free_blocks(Sequence& sequence, const Completed& how);
  std::unique_ptr<Sequence> stop_running(Sequence& sequence);
  bool id_in_use(const RequestId& engine_request_id) const;
  Tenancy& tenancy_of(const Sequence& sequence);

  SchedulerLimits limits_;
  Tenancies tenancies_{limits_.tokens_per_block};
  RunningSequences running_;
  PendingEvents events_;
  KvAllocator kv_{limits_, tenancies_};
  Publications publications_{limits_.tokens_per_block, tenancies_};
  Transfers transfers_{running_};
  SwapPlanner swap_{limits_, tenancies_, running_, kv_, transfers_};
  WaitingRequests waiting_{limits_, tenancies_, publications_, swap_, events_};
  Admission admission_{
      {limits_, tenancies_, running_, kv_, publications_, transfers_, swap_, waiting_, events_}};
  Preemption preemption_{tenancies_, running_, swap_};
  RequestMoves moves_{tenancies_, kv_, events_};
  ProposalPlanner proposals_{limits_, tenancies_, running_, kv_};
  PrefillLimit prefill_limit_;
  StepRows planned_;  // rows of the last plan
};

}  // namespace leasehold
