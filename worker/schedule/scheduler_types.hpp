/// The types of a Scheduler: its limits, its plans, and its state of tenants and leases.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "ipc/control/messages/worker.hpp"
#include "worker/kv/sequence_record.hpp"
#include "worker/schedule/events.hpp"
#include "worker/schedule/memory/spill_tracker.hpp"
#include "worker/schedule/sequence.hpp"
#include "worker/schedule/tenants/lease_growth.hpp"
#include "worker/schedule/tenants/token_counters.hpp"

namespace leasehold {

/// Retry time while other leases of the tenant hold its quota; a guess, because their end is not
/// known.
inline constexpr std::int64_t kOtherLeaseEnds_ms = 1'000;

struct SchedulerLimits {
  std::uint32_t max_batch_size = 64;  ///< Sequences in a step, at most kMaxStepSequences.
  std::uint32_t token_budget = 256;   ///< Rows in a step.
  std::uint32_t max_context = 0;      ///< Positions of the model's context.
  std::uint32_t tokens_per_block = 16;
  std::uint32_t record_blocks = 0;     ///< Blocks for the record of each sequence.
  std::uint32_t state_blocks = 0;      ///< Blocks of a copy of the recurrent state; 0: none.
  KvWindow window = {};                ///< Needs blocks of KvLayout::kBlockTokens.
  std::uint64_t block_size_bytes = 0;  ///< Sizes the additional blocks for sampling lists.
  /// All requests of an API key share a lease, so this limits a whole client; a tenant's share of
  /// `max_waiting` limits all its leases together.
  std::uint32_t max_waiting_per_lease = 256;
  std::uint32_t max_waiting = 1024;    ///< Shared by tenants (common/fair_shares.hpp).
  std::uint32_t max_adapter_rank = 0;  ///< Of adapters that requests may use; 0: none.
  std::uint32_t speculate = 0;  ///< The most proposed tokens of a sequence in a step; 0: none.

  /// The most rows with logits in a step. Proposals get the rows that the sequences leave.
  std::uint32_t max_logit_rows() const {
    return std::max(max_batch_size, std::min(token_budget, speculate + 1));
  }
  RecordShape record_shape() const {
    return {.max_context = max_context, .n_groups = 1 + window.n_groups};
  }
  WindowShape window_shape() const { return {.window = window, .step_rows = token_budget}; }
  /// A text that goes on `more_positions` after `n_blocks` known blocks keeps, in its layers with a
  /// window, the blocks from this one on; `n_blocks` for a model without such layers.
  std::uint32_t first_window(std::uint32_t n_blocks, std::uint32_t more_positions = 0) const;
  /// Blocks of one group of layers for the positions.
  std::uint32_t blocks_per_group(std::uint32_t n_positions) const {
    return (n_positions + tokens_per_block - 1) / tokens_per_block;
  }
  /// The most blocks that the positions of a text take.
  std::uint32_t blocks_for(std::uint32_t n_positions) const {
    const std::uint32_t blocks = blocks_per_group(n_positions);
    return blocks + window_shape().most_blocks(blocks);
  }
  /// The most positions for which `blocks` blocks are enough: the inverse of `blocks_for`.
  std::uint64_t positions_in(std::uint32_t blocks) const {
    const std::uint32_t in_windows = window_shape().most_blocks(blocks);
    return std::uint64_t{
               std::max(blocks / (1 + window.n_groups), blocks - std::min(blocks, in_windows))} *
           tokens_per_block;
  }
  /// Blocks for the sequence record of the request, sampling lists included.
  std::uint32_t record_blocks_of(const PromptRequest& request) const {
    return record_blocks + list_block_count(request.sampling, block_size_bytes);
  }
  /// Blocks that the request needs besides those of its positions: its record and its state.
  std::uint32_t fixed_blocks_of(const PromptRequest& request) const {
    return record_blocks_of(request) + kStateCopies * state_blocks;
  }
};

/// One sequence's part of a step.
struct PlannedRows {
  Sequence* sequence = nullptr;
  std::uint32_t n_rows = 0;  ///< Positions committed … committed + n_rows - 1.
  bool wants_token = false;  ///< The rows include the last known token.
  /// Rows after the last known token; they hold the first of the sequence's proposals.
  std::uint32_t n_proposed = 0;

  /// The rows to commit once `drawn` tokens were drawn: all rows of known tokens, and one for each
  /// accepted proposal. The other rows of proposals are dropped. With a recurrent state, which has
  /// all rows of the step in it, either all rows are committed or none.
  std::uint32_t rows_kept(std::size_t drawn) const;
};

struct StepPlan {
  std::vector<PlannedRows> parts;
};

/// A token drawn for a sequence.
struct DrawnToken {
  SampledToken sampled;
  bool is_text = true;                   ///< False: the token ends the text and is not part of it.
  std::optional<CompletionReason> ends;  ///< Set when the text ends here.
};

/// Counts proposed tokens that had a row, and those that were right.
struct ProposalCounters {
  std::uint64_t proposed = 0;
  std::uint64_t accepted = 0;
  Duration time{};  ///< Time spent on making proposals, before the steps.
};

/// Asks the broker for more memory of one lease.
struct GrowthRequest {
  LeaseId lease;
  std::uint32_t blocks = 0;
  wire::MemoryPool pool = wire::MemoryPool::Kv;
};

/// Blocks of one sequence to copy between the pools of its lease, or, as pieces of a spill, between
/// a pool and staging (kStagingExtent).
struct SwapTransfer {
  Sequence* sequence = nullptr;
  std::vector<BlockCopy> copies;
  SpillId spill = {};                   ///< The spill that `pieces` belong to.
  std::vector<SpillPiece> pieces = {};  ///< One for each copy; empty for a swap.
  /// The entry of the prefix cache that gets the copied blocks as its state (StateSnapshots).
  PrefixId state_of = {};
};

/// A running sequence being moved to another lease. It has blocks in both leases.
struct Move {
  Sequence* sequence = nullptr;
  LeaseId to;
  BlockTable blocks;              ///< Blocks of the new lease.
  std::vector<BlockCopy> copies;  ///< Copies from the old to the new lease.
};

/// The longest published prefix of a text.
struct PublishedMatch {
  LeaseId lease;  ///< The shared lease that holds `chain`, which may be empty.
  std::vector<PrefixId> chain;
  std::uint64_t revision = 0;  ///< Revision of Publications at the lookup; 0: not looked up.
};

/// The first waiting request of a lease, kept while it lacks blocks.
struct WaitingHead {
  std::uint64_t arrival = 0;           ///< Arrival of the request; 0: none was tried.
  std::unique_ptr<Sequence> sequence;  ///< Null for a swapped sequence.
  PrefixMatch match;                   ///< Cached prefix of its text.
  PublishedMatch published;
};

/// A tenant as the scheduler knows it.
struct TenantAccount {
  wire::TenantQuota quota;  ///< Arrives before the first lease.
  std::set<LeaseId> leases;
  TokenCounters::Count* counter = nullptr;  ///< Null while the tenant is not active.
  /// The same for its requests under scavenger leases, which take turns among themselves.
  TokenCounters::Count* scavenger_counter = nullptr;
  TokenCounters::Count& counter_of(bool scavenger) const {
    return *(scavenger ? scavenger_counter : counter);
  }
  /// The cost of what admitted prompts still need; valid while admissions are ordered.
  TokenCounters::Count owed = 0;
  bool takes_turn = false;  ///< Has waiting requests; valid while admissions are ordered.
  std::uint64_t admitted = 0;
  std::uint64_t last_admission = 0;
  LeaseId last_admitted;  ///< The next turn among the tenant's leases begins after this one.
  wire::TenantUsage reported;
};

/// A lease as the scheduler knows it: its tenant, its blocks and its waiting requests.
struct Tenancy {
  LeaseId lease;
  TenantId tenant;
  TenantAccount* account = nullptr;  ///< Set by Tenancies::add.
  ApiKeyId api_key{};                ///< The key of the lease's holder; empty: none.
  bool is_shared = false;            ///< Holds a published text, and belongs to no tenant.
  bool is_scavenger = false;         ///< Its requests give way to all others (LeaseAcquire).
  std::vector<PrefixId> published;   ///< For a shared lease: the text, once the fill is done.
  BlockPool pool;
  PrefixIndex prefixes;               ///< Its blocks are held in `pool`.
  std::deque<PromptRequest> waiting;  ///< Sorted by `is_admitted_before`.
  BlockPool swap;
  /// Swapped sequences by engine_request_id. Their requests are in `waiting`; their blocks are in
  /// `swap` or spilled.
  std::map<RequestId, std::unique_ptr<Sequence>> swapped;
  WaitingHead head;
  std::uint32_t running = 0;
  std::uint64_t served_tokens = 0;  ///< Committed since the last `take_served`.
  PrefixCounters reported;          ///< Counters of `prefixes` at the last `take_served`.
  LeaseGrowth growth;

  bool has_requests() const { return running > 0 || !waiting.empty(); }
  /// A tick has nothing to do for the lease.
  bool is_idle() const {
    return !has_requests() && growth.is_quiet() && !pool.has_released_records();
  }
  /// Blocks that the lease can take without growth.
  std::uint32_t available_blocks() const { return pool.free_blocks() + prefixes.unused(); }
  /// Blocks that sequences use: neither free nor only cached.
  std::uint32_t used_blocks() const { return pool.held_blocks() - prefixes.unused(); }
};

}  // namespace leasehold
