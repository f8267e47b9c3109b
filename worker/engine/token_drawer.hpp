/// Draws a step's tokens from its logits, computes the log probabilities of prompt tokens, pools
/// hidden states, and holds the results until the commit.
///
/// Each row is a unit of the engine's thread. Where a sequence has proposals, rows are drawn one
/// after the other as long as the drawn token is the proposed one. A failure, including a failed
/// allocation, ends the draws of its sequence alone.
///
/// Threads: one (the engine's).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ipc/segment/thread_gate.hpp"
#include "worker/engine/step_batch.hpp"
#include "worker/model/transformer.hpp"
#include "worker/schedule/scheduler.hpp"
#include "worker/text/sampling/sampler.hpp"

namespace leasehold {

class TokenDrawer {
 public:
  /// All of these outlive the drawer.
  struct Dependencies {
    Transformer* transformer = nullptr;  ///< Holds the step's logits.
    ThreadGate* gate = nullptr;          ///< The engine thread's gate.
    const Scheduler* scheduler = nullptr;
  };
  /// What was drawn for one part of the step.
  struct Drawn {
    std::vector<PromptToken> prompt;  ///< The positions that the commit reports.
    std::vector<DrawnToken> tokens;
    std::optional<Error> error;  ///< Set when a row of the prompt or the first row that draws
                                 ///< failed; then there is no token.
    /// States of an embedding, including the rows of this step.
    std::optional<PooledStates> pooled;
  };

  explicit TokenDrawer(const Dependencies& dependencies) : deps_(dependencies) {}

  /// Draws for each live part that has logits, and discards the results of the step before.
  void draw_all(const StepPlan& plan, const StepBatch& batch, SequenceMask live);
  /// Precondition, also of the next two functions: `index` is a part of the last plan.
  Drawn& drawn(std::uint32_t index) { return drawn_[index]; }
  /// The drawn tokens that belong to the text, without an end token; they are written to the
  /// sequence record. Valid until the next call.
  std::span<const TokenId> next_tokens(std::uint32_t index);
  /// PlannedRows::rows_kept of the part `index`.
  std::uint32_t rows_kept(const PlannedRows& part, std::uint32_t index) const;

  /// The last row of logits from which a request drew in the last step. Nothing when the request
  /// drew from no row, and after `forget_logits`.
  std::optional<std::uint32_t> logit_row(const RequestId& engine_request_id) const;
  void forget_logits() { logit_rows_.clear(); }

 private:
  bool read_prompt(const PlannedRows& part, std::uint32_t index, const StepBatch& batch);
  void pool_rows(const PlannedRows& part, std::uint32_t index, const StepBatch& batch);
  Result<void> pool(RowRange rows, PooledStates& states) const;
  void draw_tokens(PlannedRows part, std::uint32_t index, const StepBatch& batch);
  Result<bool> draw_row(const PlannedRows& part, std::vector<DrawnToken>& drawn,
                        std::uint32_t logit_row);
  Result<DrawnToken> draw(const Sequence& sequence, std::span<const TokenId> history,
                          std::uint32_t logit_row);
  Result<SampledToken> sample_row(std::uint32_t logit_row, SampleInput input);

  Dependencies deps_;
  std::vector<Drawn> drawn_;          // by part of the running step
  std::vector<TokenId> history_;      // one part's text with its right proposals
  std::vector<TokenId> next_tokens_;  // of one part
  SamplerScratch scratch_;
  std::map<RequestId, std::uint32_t> logit_rows_;
};

}  // namespace leasehold
