/// How the leased memory of a draft model is divided, and how many rows its passes have. For each
/// of its texts it has blocks of keys and values, then blocks of the copies of the text's recurrent
/// state. A worker allocates this memory, and a plan counts it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/kv_layout.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/kv_type.hpp"
#include "kernels/model/step_buffers.hpp"
#include "kernels/state_layout.hpp"

namespace leasehold {

/// The state of the accepted text, that of the latest proposal, and one that a pass writes.
inline constexpr std::uint32_t kDraftStateCopies = 3;

/// The most rows in a pass of texts that the draft model has not caught up with.
inline constexpr std::uint32_t kDraftPrefillRows = 64;

struct DraftLayout {
  KvLayout kv;
  StateLayout state;
  std::uint32_t n_texts = 0;
  std::uint32_t blocks_per_group = 0;  ///< Of one text in each group of layers.

  std::uint32_t kv_blocks() const { return blocks_per_group * kv.n_groups(); }
  /// Of all copies.
  std::uint32_t state_blocks() const { return kDraftStateCopies * state.blocks(); }
  std::uint32_t blocks_per_text() const { return kv_blocks() + state_blocks(); }
  std::uint64_t size_bytes() const {
    return std::uint64_t{n_texts} * blocks_per_text() * kv.block_size_bytes();
  }

  /// The most unprocessed tokens of a text that the draft has caught up with, with `speculate`
  /// proposals in a step. After a step that accepted all of them they are the last proposal and the
  /// token after it. A recurrent state also repeats the accepted ones after a rejection.
  std::uint32_t usual_rows(std::uint32_t speculate) const {
    return state.blocks() > 0 ? std::max(speculate + 1, 2u) : 2;
  }
  StepLimits step_limits(std::uint32_t speculate) const {
    return {.max_rows = usual_rows(speculate) * n_texts + kDraftPrefillRows,
            .max_logit_rows = n_texts};
  }
};

/// The memory for texts of at most `config.n_context` tokens. Precondition: that of kv_layout.
inline DraftLayout draft_layout(const ModelConfig& config, KvType type, std::uint32_t n_texts) {
  const KvLayout kv = kv_layout(config, type);
  return {
      .kv = kv,
      .state = state_layout(config, kv),
      .n_texts = n_texts,
      .blocks_per_group = (config.n_context + KvLayout::kBlockTokens - 1) / KvLayout::kBlockTokens};
}

}  // namespace leasehold
