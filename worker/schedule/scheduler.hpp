/// Who runs in the next step, with how many rows.
///
/// Pure: no clock, no chance, no memory access; time is an argument. One scheduler per engine.
///
/// A tick is `plan` → (the engine runs the forward pass) → `commit` or `abandon`. Decode rows come
/// first, one per running sequence; prefill rows fill the rest of the token budget in chunks, in
/// order of admission. A sequence that lacks a block waits without holding up the others; when the
/// broker has refused to lend more, the one of its lease with the least to lose ends with
/// OutOfBlocks and nobody else notices.
///
/// Bound on waiting: with a token budget of at least `max_batch_size`, every decoding sequence that
/// has its block gets a row in every tick; waiting requests of different leases are admitted in
/// turn (round robin), so a lease with a free place is passed over by at most one admission of
/// every other lease.
///
/// Threads: one (the engine's). Errors are typed; nothing a tenant asks for can abort.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "worker/schedule/events.hpp"
#include "worker/schedule/sequence.hpp"
#include "worker/schedule/tenancy.hpp"

namespace leasehold {

struct SchedulerLimits {
  std::uint32_t max_batch_size = 64;  ///< Sequences in a step, at most kMaxStepSequences.
  std::uint32_t token_budget = 256;   ///< Rows in a step.
  std::uint32_t max_context = 0;      ///< Positions the model has.
  std::uint32_t tokens_per_block = 16;
  std::uint32_t record_blocks = 0;     ///< Blocks each sequence needs for its record, at least.
  std::uint64_t block_size_bytes = 0;  ///< How many more one with sampling lists needs.
  std::uint32_t max_waiting_per_lease = 64;
  std::uint32_t max_waiting = 1024;
};

/// One sequence's part of a step.
struct PlannedRows {
  Sequence* sequence = nullptr;
  std::uint32_t n_rows = 0;  ///< Positions committed … committed + n_rows - 1.
  bool wants_token = false;  ///< Its last row is the last known token.
};

struct StepPlan {
  std::vector<PlannedRows> parts;
  std::uint32_t row_count() const;
};

/// A token drawn for a sequence, and what it means for it.
struct DrawnToken {
  SampledToken sampled;
  bool is_text = true;                   ///< False: it ends the text and is no part of it.
  std::optional<CompletionReason> ends;  ///< The text ends here.
};

/// More memory one lease could use.
struct GrowthRequest {
  LeaseId lease;
  std::uint32_t blocks = 0;
};

class Scheduler {
 public:
  explicit Scheduler(SchedulerLimits limits) : limits_(limits) {}

  // ---- leases come and go while others run

  /// Precondition: the lease is not known yet.
  void add_lease(TenancyConfig config);
  /// The tenant's quota as it is now; admits nothing until under it, ends nothing.
  void set_quota(LeaseId lease, std::uint32_t max_concurrent, std::uint32_t max_blocks);
  void add_extent(LeaseId lease, ExtentId extent, std::uint32_t blocks);
  /// The broker's answer to a GrowthRequest was no. At the next plan one running sequence that
  /// lacks a block ends, or the first waiting request is rejected when nothing of the lease runs.
  void deny_growth(LeaseId lease);
  std::vector<ExtentId> remove_free_extents(LeaseId lease, std::uint32_t count);
  /// Ends everything of the lease in this way and forgets it.
  void end_lease(LeaseId lease, const Completed& how);
  /// Its requests that wait will not be admitted; those that run go on.
  void reject_waiting(LeaseId lease, const Error& why);
  bool has_lease(LeaseId lease) const { return tenancies_.contains(lease); }
  std::vector<LeaseId> leases() const;

  // ---- requests

  /// Queues a request. Errors: LeaseFenced (unknown lease), UnknownTenant (not its tenant),
  /// BadRequest (empty prompt, token count, sampling, id in use), PromptTooLong, QuotaBlocks,
  /// QuotaConcurrent (this lease's queue is full), QueueFull.
  Result<void> submit(PromptRequest request);
  /// Ends it, waiting or running. UnknownRequest when there is none.
  Result<void> cancel(const RequestId& engine_request_id);

  // ---- the tick

  /// Admits what fits, ends what cannot go on, and says what to run. Pointers in the plan stay
  /// valid until `commit` or `abandon`.
  StepPlan plan(TimePoint now);

  /// A sequence's rows are in the cache. With a token it grows by it and may end. Emits Token, then
  /// Completed when it was the last.
  void commit(const PlannedRows& part, std::optional<DrawnToken> drawn);
  /// Ends one running sequence; its blocks are free again. `already_delivered`: the completion was
  /// delivered by whoever saw it first.
  void end_sequence(Sequence& sequence, Completed how, bool already_delivered = false);
  /// It may emit no more tokens. One that was rebound may be so from the start: its last token was
  /// told, its end was not.
  bool is_full(const Sequence& sequence) const;

  /// Ends every request, waiting or running, with this error. Leases stay.
  void end_all(const Error& error);

  /// Everything since the last call, in the order of events.hpp.
  std::vector<SchedulerEvent> take_events();
  std::vector<GrowthRequest> take_growth_requests();

  bool has_work() const;
  std::uint32_t running_count() const { return static_cast<std::uint32_t>(running_.size()); }
  std::uint32_t waiting_count() const;
  const std::map<LeaseId, Tenancy>& tenancies() const { return tenancies_; }
  const std::vector<std::unique_ptr<Sequence>>& running() const { return running_; }

 private:
  Result<void> check(const PromptRequest& request) const;
  Result<void> check_sizes(const PromptRequest& request, const Tenancy& tenancy) const;
  bool id_in_use(const RequestId& engine_request_id) const;
  void end_waiting(Tenancy& tenancy, const Completed& how);
  void drop_expired(TimePoint now);
  void admit_round_robin();
  bool admit_one(Tenancy& tenancy);
  bool reserve_first_blocks(Sequence& sequence, Tenancy& tenancy);
  bool reserve_rows(Sequence& sequence, std::uint32_t n_rows);
  void request_growth(Tenancy& tenancy, std::uint32_t missing);
  void end_starved();
  std::uint32_t running_of(const TenantId& tenant) const;
  static std::uint32_t blocks_held(const Sequence& sequence);
  std::uint32_t free_stop_slot() const;
  std::uint32_t blocks_for(std::uint32_t n_positions) const;
  std::uint32_t record_blocks_of(const PromptRequest& request) const;
  Tenancy& tenancy_of(const Sequence& sequence);

  SchedulerLimits limits_;
  std::map<LeaseId, Tenancy> tenancies_;
  std::vector<std::unique_ptr<Sequence>> running_;
  LeaseId last_admitted_;  // the turn goes on after it
  std::uint64_t admissions_ = 0;
  std::vector<Sequence*> starved_;
  std::vector<Completed> completed_;
  std::vector<AdmissionRejected> rejected_;
  std::vector<Rebound> rebound_;
  std::vector<Token> tokens_;
};

}  // namespace leasehold
