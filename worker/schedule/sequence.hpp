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
#include "worker/schedule/proposal_limit.hpp"
#include "worker/schedule/request.hpp"
#include "worker/schedule/row_work.hpp"

namespace leasehold {

class TokenRules;

struct Sequence {
  PromptRequest request;
  std::vector<TokenId> tokens;  ///< Prompt, then everything emitted.
  BlockTable blocks;
  std::uint32_t stop_slot = 0;        ///< Of the StopFlags; its own while it runs.
  std::uint64_t admission = 0;        ///< Number of this admission; unique in a scheduler.
  std::shared_ptr<TokenRules> rules;  ///< Set and used by the engine.
  bool awaits_mask = false;           ///< Set by the engine: it cannot draw a token yet.
  std::vector<TokenId> proposals;     ///< Set by the engine: what may follow, in the next step.
  Acceptance acceptance;              ///< Of the proposals.
  /// The lease of the published text whose blocks it reads. It ends with that lease, too.
  std::optional<LeaseId> shared_lease;
  std::vector<PrefixId> borrowed;  ///< Their entries there, referenced.

  RecordProgress record;  ///< Of the sequence record in the lease's memory.

  Sequence(PromptRequest from, std::uint32_t tokens_per_block)
      : request(std::move(from)), tokens(request.prompt), blocks(tokens_per_block) {
    tokens.insert(tokens.end(), request.emitted.begin(), request.emitted.end());
  }

  /// Tokens emitted over the whole life of the request, rebinds included.
  std::uint32_t emitted() const {
    return static_cast<std::uint32_t>(tokens.size() - request.prompt.size());
  }
  /// Positions that are not in the cache yet; 1 when decoding.
  std::uint32_t pending() const {
    return static_cast<std::uint32_t>(tokens.size()) - blocks.committed();
  }
  /// The work of the next `n_rows` rows.
  std::uint64_t work_of(std::uint32_t n_rows) const {
    return work_of_rows(blocks.committed(), n_rows);
  }
  /// How many of the next `n_rows` rows hold tokens that were known at the admission, were not
  /// cached then, and are computed for the first time.
  std::uint32_t prompt_rows(std::uint32_t n_rows) const {
    const auto known = static_cast<std::uint32_t>(known_tokens(request));
    const std::uint32_t from = std::max(blocks.committed(), request.charged);
    const std::uint32_t to = std::min(known, blocks.committed() + n_rows);
    return to - std::min(from, to);
  }
  /// The commit of `n_rows` more positions and of the tokens `next`, a view. It names the blocks of
  /// committed positions only: those of proposals may be given back.
  RecordCommit record_commit(std::uint32_t n_rows, std::span<const TokenId> next) const {
    return {.engine_request_id = &request.engine_request_id,
            .sampling = &request.sampling,
            .max_emitted_tokens = request.max_emitted_tokens,
            .prompt_tokens = static_cast<std::uint32_t>(request.prompt.size()),
            .committed = blocks.committed() + n_rows,
            .tokens = tokens,
            .next = next,
            .blocks = blocks.blocks_of(blocks.committed() + n_rows),
            .own_blocks = blocks.record_blocks()};
  }
};

}  // namespace leasehold
