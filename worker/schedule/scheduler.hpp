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
/// Prompts with log probabilities: all their rows need logits, so they get at most the rows with
/// logits that the other sequences of the step leave. They reuse no cached block whose positions
/// are not reported. While kMaxUntakenLogprobs values are on their way, they get no rows.
///
/// Copies: the scheduler lists the copies of a step (`transfers`) and treats them as done at once:
/// it assigns the source blocks to other sequences. The engine must therefore make the copies in
/// the order of the list, before the forward pass, and report each (`transfer_done`). A failed
/// transfer stays in the list, and no sequence is admitted meanwhile.
///
/// A full committed block stays cached under its lease (PrefixIndex), and a prompt that begins with
/// the same text reuses it; KvAllocator evicts cached blocks. StateSnapshots caches recurrent
/// states. Publications lends published texts to all tenants, and ProposalPlanner gives rows to
/// proposed tokens. After the step a sequence frees the blocks beyond its text. A tenant is charged
/// for the rows of wrong proposals, because they take as much time as right ones.
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
/// Scavengers: requests under scavenger leases (LeaseAcquire) run when no others do, and beside
/// others with the rows of ScavengerShare. They are admitted last, give their places to others, and
/// count for no tenant's turn, but take turns among themselves. What is said of tenants here is
/// without them.
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
#include "worker/schedule/admission.hpp"
#include "worker/schedule/events.hpp"
#include "worker/schedule/memory/kv_allocator.hpp"
#include "worker/schedule/memory/lease_blocks.hpp"
#include "worker/schedule/memory/publications.hpp"
#include "worker/schedule/memory/state_snapshots.hpp"
#include "worker/schedule/memory/swap_planner.hpp"
#include "worker/schedule/memory/transfers.hpp"
#include "worker/schedule/pending_events.hpp"
#include "worker/schedule/preemption.hpp"
#include "worker/schedule/request_moves.hpp"
#include "worker/schedule/rows/proposal_planner.hpp"
#include "worker/schedule/rows/row_budget.hpp"
#include "worker/schedule/running_sequences.hpp"
#include "worker/schedule/scheduler_types.hpp"
#include "worker/schedule/sequence.hpp"
#include "worker/schedule/tenants/tenancies.hpp"
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

  /// The leases: add one, ask for growth or record its refusal, take the reports to the broker.
  Tenancies& tenancies() { return tenancies_; }
  const Tenancies& tenancies() const { return tenancies_; }
  /// Sets the quota of a tenant, over all its leases here. Without a quota, or above it, no request
  /// is admitted; running requests continue within the quota under which they were admitted. A
  /// withdrawn quota is removed once the tenant has no lease here.
  void set_quota(const wire::TenantQuota& quota);
  /// Ends with `how` every request of the lease and every request that reads its published text or
  /// its adapter, and removes the lease.
  void end_lease(LeaseId lease, const Completed& how);

  // ---- memory

  LeaseBlocks blocks() { return {tenancies_, kv_, transfers_}; }
  /// The KV blocks that requests hold or gave back, since the last call.
  std::vector<KvChange> take_kv_changes() { return kv_.take_changes(); }
  /// The spill file's jobs, answers and events. Jobs that depend on copies are added by
  /// `transfer_done`.
  SpillPlanner& spill() { return swap_.spill(); }
  const SpillPlanner& spill() const { return swap_.spill(); }

  // ---- requests

  /// Queues a request. Errors: LeaseFenced (unknown lease), UnknownTenant (another tenant's lease),
  /// BadRequest (empty prompt, token count, sampling, id in use), PromptTooLong, QuotaBlocks,
  /// QuotaConcurrent (this lease's queue is full), QueueFull.
  Result<void> submit(PromptRequest request);
  /// The error that `submit` would return. QuotaBlocks with `retry_after_ms` when the blocks are
  /// held by the tenant's leases on other workers, without it when the request can never have them.
  Result<void> check(const PromptRequest& request) const;
  const RequestFit& fit() const { return admission_.fit(); }
  /// The request that computes the full blocks of `text` in a shared lease and keeps them, without
  /// emitting a token. Once it is submitted, `publications().take_filled` returns the result.
  /// Errors: LeaseFenced (no such shared lease), BadRequest (no full block, filled already),
  /// UnsupportedModel (a recurrent state, which is not part of a published text).
  Result<PromptRequest> fill_request(LeaseId lease, std::vector<TokenId> text) const;
  Publications& publications() { return publications_; }
  /// Ends a waiting or running request. Errors: UnknownRequest.
  Result<void> cancel(const RequestId& engine_request_id);

  /// Reserves blocks for a running request in another lease of its tenant. The caller makes the
  /// copies, then calls `finish` or `drop` of `moves()` before any other function. Errors:
  /// UnknownRequest, LeaseFenced (no such lease of the tenant), BadRequest (its own lease);
  /// QueueFull while the request waits or a transfer is pending, and PoolExhausted, after which the
  /// scheduler requests growth of the lease: the caller may retry both; QuotaBlocks.
  Result<Move> begin_move(const RequestId& engine_request_id, LeaseId to);
  RequestMoves& moves() { return moves_; }
  WaitingRequests& waiting() { return waiting_; }

  // ---- the tick

  /// Ends expired waiting requests and admits requests that fit.
  void admit(TimePoint now);
  /// Preempts or ends sequences that lack blocks, and plans the step. Pointers in the plan stay
  /// valid while their sequence runs.
  StepPlan plan();
  ProposalPlanner& proposals() { return proposals_; }
  const ProposalPlanner& proposals() const { return proposals_; }
  /// Records the duration of the planned step, for the limits of later steps. If it is never
  /// called, prompts may fill the token budget.
  void note_duration(Duration step);

  /// The copies to make before the forward pass, in this order.
  const std::vector<SwapTransfer>& transfers() const { return transfers_.all(); }
  /// Records that the sequence's first transfer in the list was made, and its duration.
  void transfer_done(const Sequence& sequence, Duration copying);

  /// Commits the rows in PlannedRows::rows_kept, and appends the drawn tokens: the accepted
  /// proposals, then at most one more. Emits PromptLogprobs for `prompt`, which are the positions
  /// up to Sequence::reported_after, then Token for each drawn token, then Completed when the
  /// sequence ends. Precondition: no transfer is pending.
  void commit(const PlannedRows& part, std::vector<DrawnToken> drawn,
              std::vector<PromptToken> prompt = {});
  /// Ends one running or swapped sequence and frees its blocks. With `already_delivered` no
  /// Completed event is emitted, because a gate thread delivered it early.
  void end_sequence(Sequence& sequence, Completed how, bool already_delivered = false);

  /// Ends every waiting and running request with this error. Leases stay.
  void end_all(const Error& error);

  /// Returns all events since the last call, in the order of events.hpp.
  std::vector<SchedulerEvent> take_events() { return events_.take(); }

  bool has_work() const;
  /// True if a request waits or runs with the adapter under this lease.
  bool has_users(LeaseId adapter) const;
  const RunningSequences& running() const { return running_; }

 private:
  StepPlan plan_rows();
  std::uint32_t add_part(Sequence& sequence, std::uint32_t n_rows, StepPlan& plan);
  std::vector<PlannedRows> prefill_least_served(bool scavengers) const;
  bool relieve_starved();
  void preempt(const Relief& relief);
  void free_blocks(Sequence& sequence, const Completed& how);
  std::unique_ptr<Sequence> stop_running(Sequence& sequence);

  SchedulerLimits limits_;
  Tenancies tenancies_{limits_.tokens_per_block};
  RunningSequences running_;
  PendingEvents events_;
  KvAllocator kv_{limits_, tenancies_};
  Publications publications_{limits_, tenancies_};
  Transfers transfers_{running_};
  SwapPlanner swap_{limits_, tenancies_, running_, kv_, transfers_};
  WaitingRequests waiting_{limits_, tenancies_, publications_, swap_, events_};
  Admission admission_{
      {limits_, tenancies_, running_, kv_, publications_, transfers_, swap_, waiting_, events_}};
  Preemption preemption_{tenancies_, running_, swap_};
  RequestMoves moves_{tenancies_, kv_, events_};
  ProposalPlanner proposals_{limits_, tenancies_, running_, kv_};
  RowBudget rows_{limits_};
  StateSnapshots snapshots_{limits_, tenancies_, running_, kv_, transfers_};
};

}  // namespace leasehold
