/// One running request: its tokens, its blocks and how many positions the KV cache holds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/checksum.hpp"
#include "worker/kv/block_table.hpp"
#include "worker/kv/sequence_record.hpp"
#include "worker/schedule/request.hpp"
#include "worker/schedule/rows/proposal_limit.hpp"
#include "worker/schedule/rows/row_work.hpp"
#include "worker/schedule/tenants/token_counters.hpp"

namespace leasehold {

class TokenRules;

/// The positions [begin, end) of a text.
struct PositionRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// Limit on the log probabilities of a prompt that are on their way to the client, in values (about
/// 80 KiB of output). A prompt is therefore computed only as fast as the client reads.
inline constexpr std::uint32_t kMaxUntakenLogprobs = 2048;

/// A sequence with a recurrent state leaves a copy of it after each of this many positions, which
/// are whole blocks.
inline constexpr std::uint32_t kSnapshotPositions = 256;

/// A lease that a sequence depends on, and the scope of the failure when that lease ends.
struct SequenceLease {
  LeaseId lease;
  FailureScope scope = FailureScope::Tenant;
};

struct Sequence {
  PromptRequest request;
  std::vector<TokenId> tokens;  ///< Prompt, then all emitted tokens.
  BlockTable blocks;
  std::uint32_t stop_slot = 0;  ///< Index in the StopFlags; exclusive while the sequence runs.
  std::uint64_t admission = 0;  ///< Number of this admission; unique in a scheduler.
  bool is_scavenger = false;    ///< Copied from its tenancy at the admission.
  std::shared_ptr<TokenRules> rules;  ///< Set and used by the engine.
  /// Set by the engine: the mask is not ready, so no token can be drawn.
  bool awaits_mask = false;
  /// Set by the engine: tokens that may follow, for the next step.
  std::vector<TokenId> proposals;
  Acceptance acceptance;  ///< Acceptance rate of the proposals.
  /// The most rows of the next step that count as decoding. It is above 1 after a step that dropped
  /// all its rows with a rejected proposal: the rows of its tokens are computed again.
  std::uint32_t decode_rows = 1;
  /// The lease of the published text whose blocks the sequence reads.
  std::optional<LeaseId> shared_lease;
  std::vector<PrefixId> borrowed;  ///< The prefix index entries of those blocks; the sequence holds
                                   ///< a reference to each.

  RecordProgress record;  ///< State of the sequence record in the lease's memory.
  /// Positions of PromptLogprobs that are on their way to the client.
  std::uint32_t untaken_positions = 0;

  Sequence(PromptRequest from, std::uint32_t tokens_per_block, std::uint32_t state_blocks = 0,
           const WindowShape& windows = {})
      : request(std::move(from)),
        tokens(request.prompt),
        blocks(tokens_per_block, state_blocks, windows) {
    tokens.insert(tokens.end(), request.emitted.begin(), request.emitted.end());
  }

  /// The lease of its blocks, then the others whose memory it reads: that of a published text, and
  /// that of its adapter. The sequence ends when one of them ends.
  std::vector<SequenceLease> leases() const;
  /// Nothing for a lease that the sequence does not depend on.
  std::optional<FailureScope> scope_of(LeaseId lease) const;
  /// Its text as the prefix index of its lease knows it.
  OwnedText owned_text(const TenantId& owner) const;

  /// Tokens emitted over the whole life of the request, rebinds included.
  std::uint32_t emitted() const {
    return static_cast<std::uint32_t>(tokens.size() - request.prompt.size());
  }
  /// Known positions that are not in the KV cache yet.
  std::uint32_t pending() const {
    return static_cast<std::uint32_t>(tokens.size()) - blocks.committed();
  }
  /// False while rows of a prompt, or of a text that was preempted or rebound, are computed.
  bool is_decoding() const { return pending() <= decode_rows; }
  /// Commits `n_rows` rows after the tokens were appended that the step drew.
  void commit(std::uint32_t n_rows) {
    const bool repeats = n_rows == 0 || is_decoding();
    blocks.commit(blocks.committed() + n_rows);
    decode_rows = repeats ? pending() : 1;
  }
  /// The number of rows that the sequence can compute now. Without a mask no token can be drawn, so
  /// the last row waits. A sequence whose spilled blocks are being read back computes nothing.
  std::uint32_t rows_ready() const {
    if (blocks.state() == KvState::Returning) return 0;
    const std::uint32_t ready = std::min(pending() - (awaits_mask ? 1 : 0), rows_to_snapshot());
    return request.reports_prompt() ? std::min(ready, rows_to_report()) : ready;
  }
  /// The most rows of a step. With a recurrent state they end at the next snapshot.
  std::uint32_t rows_to_snapshot() const {
    return blocks.recurrent().exists()
               ? kSnapshotPositions - blocks.committed() % kSnapshotPositions
               : ~std::uint32_t{0};
  }
  /// The leading prompt positions that are reported once the next `n_rows` rows are computed. The
  /// row of a position has the logits of the next one; the first position needs no row.
  std::uint32_t reported_after(std::uint32_t n_rows) const {
    if (!request.reports_prompt()) return request.reported_positions;
    const auto prompt = static_cast<std::uint32_t>(request.prompt.size());
    return std::max(request.reported_positions, std::min(prompt, blocks.committed() + n_rows + 1));
  }
  /// The positions among the next `n_rows` rows whose hidden states the embedding still needs.
  PositionRange positions_to_pool(std::uint32_t n_rows) const {
    if (!request.embedding) return {};
    const std::uint32_t end = blocks.committed() + n_rows;
    const auto last = static_cast<std::uint32_t>(tokens.size()) - 1;
    const std::uint32_t next = request.first_row_needed().value_or(last);
    return {std::min(std::max(next, blocks.committed()), end), end};
  }
  /// The work of the next `n_rows` rows.
  std::uint64_t work_of(std::uint32_t n_rows) const {
    return work_of_rows(blocks.committed(), n_rows);
  }
  /// What a tenant of this weight is charged for work of the sequence. A row under an adapter also
  /// reads the adapter's matrices.
  TokenCounters::Count cost_of(std::uint64_t work, std::uint32_t weight) const {
    const TokenCounters::Count base = TokenCounters::cost(work, weight);
    if (!request.adapter.use) return base;
    return base +
           static_cast<TokenCounters::Count>(static_cast<double>(base) * request.adapter.share);
  }
  /// How many of the next `n_rows` rows hold tokens that were known at the admission, were not
  /// cached then, and are computed for the first time.
  std::uint32_t prompt_rows(std::uint32_t n_rows) const {
    const auto known = static_cast<std::uint32_t>(known_tokens(request));
    const std::uint32_t from = std::max(blocks.committed(), request.charged);
    const std::uint32_t to = std::min(known, blocks.committed() + n_rows);
    return to - std::min(from, to);
  }
  /// The `charged` positions of the request if it stops now and is computed again later.
  std::uint32_t charged_if_stopped() const {
    const bool is_decoding = blocks.committed() >= known_tokens(request);
    const auto charged = is_decoding ? tokens.size() : blocks.committed();
    return std::max(request.charged, static_cast<std::uint32_t>(charged));
  }
  /// The rows that can be computed before kMaxUntakenLogprobs is reached. After a preemption, rows
  /// whose positions were reported before are computed again without limit.
  std::uint32_t rows_to_report() const {
    const std::uint32_t first = std::max(request.reported_positions, 1u) - 1;
    const std::uint32_t again = first - std::min(first, blocks.committed());
    const std::uint32_t most = kMaxUntakenLogprobs / (1 + request.prompt_logprobs.value_or(0));
    return again + most - std::min(most, untaken_positions);
  }
  /// Describes the commit of `n_rows` more positions and of the tokens `next`, as a view. It
  /// contains the blocks of committed positions only, because blocks of proposals may be freed.
  RecordCommit record_commit(std::uint32_t n_rows, std::span<const TokenId> next) const;
};

}  // namespace leasehold
