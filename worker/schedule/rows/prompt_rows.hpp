/// Distributes the prompt rows of one step.
///
/// Each chunk of rows goes to the payer (the tenant) with the least count, and within it to the
/// prompt that was added first. A short prompt goes first while its payer's count is at most a
/// short prompt's work above the least; among equal counts the prompt added first is chosen. The
/// counts are copies: the caller charges the computed rows.
///
/// Invariant: the assigned rows never exceed `rows`, and their work never exceeds `work`, except
/// that the first row of the step is always assigned. Of prompts that report log probabilities, all
/// rows need logits; together they get at most one row each and `logit_rows` more.
///
/// Pure. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "worker/schedule/scheduler_types.hpp"

namespace leasehold {

class PromptRows {
 public:
  struct Limits {
    std::uint32_t rows = 0;
    std::uint64_t work = 0;
    std::uint64_t short_work = 0;  ///< A prompt that needs no more work than this is short.
    std::uint32_t logit_rows = 0;  ///< Rows with logits beyond one for each prompt.
  };
  explicit PromptRows(const Limits& limits)
      : rows_(limits.rows),
        work_(limits.work),
        short_work_(limits.short_work),
        logit_rows_(limits.logit_rows) {}

  /// `account`: the active tenant of the sequence.
  void add(Sequence& sequence, const TenantAccount& account);

  /// Assigns rows, a chunk at a time, until none is left or no prompt can take one.
  std::vector<PlannedRows> give(std::uint32_t chunk_rows);

 private:
  struct Payer {
    TokenCounters::Count count;
    std::uint32_t weight;
    bool is_seen = false;  // set at its first prompt, because its prompts are computed in order
  };
  struct Prompt {
    Sequence* sequence = nullptr;
    std::uint32_t ready = 0;  // rows that the prompt can take
    bool is_short = false;
    Payer* payer = nullptr;
    std::uint32_t n_rows = 0;
  };
  Prompt* choose();
  void give_chunk(Prompt& prompt, std::uint32_t chunk_rows);

  std::uint32_t rows_;  // left
  std::uint64_t work_;  // left
  std::uint64_t short_work_;
  std::uint32_t logit_rows_;  // not assigned yet
  bool is_empty_ = true;
  std::map<const TenantAccount*, Payer> payers_;
  std::vector<Prompt> prompts_;
};

}  // namespace leasehold
