/// What a Scheduler is given, plans, and keeps of tenants and leases.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "ipc/control/messages_worker.hpp"
#include "worker/schedule/events.hpp"
#include "worker/schedule/sequence.hpp"
#include "worker/schedule/spill_books.hpp"
#include "worker/schedule/token_counters.hpp"

namespace leasehold {

/// When to retry while other leases of the tenant hold its quota. When one ends is not known.
inline constexpr std::int64_t kOtherLeaseEnds_ms = 1'000;

struct SchedulerLimits {
  std::uint32_t max_batch_size = 64;  ///< Sequences in a step, at most kMaxStepSequences.
  std::uint32_t token_budget = 256;   ///< Rows in a step.
  std::uint32_t max_context = 0;      ///< Positions of the model's context.
  std::uint32_t tokens_per_block = 16;
  std::uint32_t record_blocks = 0;     ///< Blocks for the record of each sequence.
  std::uint64_t block_size_bytes = 0;  ///< Sizes the additional blocks for sampling lists.
  /// All requests of an API key share a lease, so this bounds a whole client; a tenant's share of
  /// `max_waiting` bounds its leases together.
  std::uint32_t max_waiting_per_lease = 256;
  std::uint32_t max_waiting = 1024;  ///< Shared by tenants (common/fair_shares.hpp).
  std::uint32_t speculate = 0;       ///< Proposed tokens of a sequence in a step; 0: none.

  /// Rows of a step that have logits, at most. Proposals take what the sequences leave.
  std::uint32_t max_logit_rows() const {
    return std::max(max_batch_size, std::min(token_budget, speculate + 1));
  }
};

/// One sequence's part of a step.
struct PlannedRows {
  Sequence* sequence = nullptr;
  std::uint32_t n_rows = 0;  ///< Positions committed … committed + n_rows - 1.
  bool wants_token = false;  ///< A row holds its last known token.
  /// The rows behind it: they hold the first ones of the sequence's proposals.
  std::uint32_t n_proposed = 0;

  /// The rows that stay once `drawn` tokens were drawn: all rows of known tokens, and one for each
  /// accepted proposal. The other proposed rows are dropped.
  std::uint32_t rows_kept(std::size_t drawn) const {
    const auto accepted = static_cast<std::uint32_t>(drawn > 1 ? drawn - 1 : 0);
    return n_rows - n_proposed + accepted;
  }
};

struct StepPlan {
  std::vector<PlannedRows> parts;
};

/// A token drawn for a sequence.
struct DrawnToken {
  SampledToken sampled;
  bool is_text = true;                   ///< False: the token ends the text and is not part of it.
  std::optional<CompletionReason> ends;  ///< Why the text ends here, if it does.
};

/// Tokens of proposals: computed in rows, and found right.
struct ProposalCounters {
  std::uint64_t proposed = 0;
  std::uint64_t accepted = 0;
  Duration time{};  ///< Spent on making proposals, before the steps.
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
  SpillId spill = {};                   ///< Of `pieces`.
  std::vector<SpillPiece> pieces = {};  ///< One for each copy; empty for a swap.
};

/// A running sequence on its way to another lease. It has its blocks in both.
struct Move {
  Sequence* sequence = nullptr;
  LeaseId to;
  BlockTable blocks;              ///< Of the new lease.
  std::vector<BlockCopy> copies;  ///< From the old to the new one.
};

/// The longest published beginning of a text.
struct PublishedMatch {
  LeaseId lease;  ///< Of the chain, which may be empty.
  std::vector<PrefixId> chain;
  std::uint64_t publications = 0;  ///< By then; 0: not looked up.
};

/// The first waiting request of a lease, while it lacks blocks.
struct WaitingHead {
  std::uint64_t arrival = 0;           ///< Of the request; 0: none was tried.
  std::unique_ptr<Sequence> sequence;  ///< Null for a swapped one.
  PrefixMatch match;                   ///< Of its text.
  PublishedMatch published;
};

/// A tenant as the scheduler knows it.
struct TenantAccount {
  wire::TenantQuota quota;  ///< Precedes the first lease.
  std::set<LeaseId> leases;
  TokenCounters::Count* counter = nullptr;  ///< Of an active tenant.
  std::uint64_t owed = 0;  ///< Rows of running prompts, while admissions are ordered.
  std::uint64_t admitted = 0;
  std::uint64_t last_admission = 0;
  LeaseId last_admitted;  ///< The turn of the tenant's leases continues after it.
  wire::TenantUsage reported;
};

/// A lease as the scheduler knows it: its tenant, its blocks and its waiting requests.
struct Tenancy {
  LeaseId lease;
  TenantId tenant;
  TenantAccount* account = nullptr;  ///< Set by `add_lease`.
  bool is_shared = false;            ///< Holds a published text, and belongs to no tenant.
  std::vector<PrefixId> published;   ///< Of a shared lease: the text, once the fill is done.
  BlockPool pool;
  PrefixIndex prefixes;               ///< Its blocks are held in `pool`.
  std::deque<PromptRequest> waiting;  ///< Sorted by `is_admitted_before`.
  BlockPool swap;
  /// By engine_request_id; their requests are in `waiting`, their blocks are held in `swap`, or
  /// they are spilled.
  std::map<RequestId, std::unique_ptr<Sequence>> swapped;
  WaitingHead head;
  std::uint32_t running = 0;
  std::uint64_t served_tokens = 0;             ///< Committed since the last `take_served`.
  PrefixCounters reported;                     ///< Of `prefixes`, at the last `take_served`.
  std::optional<std::uint32_t> growth_denied;  ///< Blocks that the broker refused, until the plan.
  bool is_at_quota = false;  ///< The last refusal was about the tenant's limit, not the pool.
  /// For the next GrowthRequest. What a waiting request wants is asked for while no running
  /// sequence wants any, because the broker lends all that is asked for, or nothing.
  std::uint32_t blocks_wanted = 0;
  std::uint32_t blocks_wanted_waiting = 0;
  std::uint32_t swap_blocks_wanted = 0;
  bool swap_refused = false;  ///< The broker refused swap, and has not granted any since.
  bool awaits_swap = false;   ///< The last plan kept a victim until the broker answers.

  /// Blocks that the lease can take without growth.
  std::uint32_t available_blocks() const { return pool.free_blocks() + prefixes.unused(); }
  /// Blocks that are neither free nor cached alone.
  std::uint32_t used_blocks() const { return pool.held_blocks() - prefixes.unused(); }
};

}  // namespace leasehold
