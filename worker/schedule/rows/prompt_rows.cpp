#include "worker/schedule/rows/prompt_rows.hpp"

#include <algorithm>
#include <utility>

namespace leasehold {

void PromptRows::add(Sequence& sequence, const TenantAccount& account) {
  Payer& payer =
      payers_.try_emplace(&account, account.counter_of(sequence.is_scavenger), account.quota.weight)
          .first->second;
  prompts_.push_back({.sequence = &sequence,
                      .ready = sequence.rows_ready(),
                      .is_short = sequence.work_of(sequence.pending()) <= short_work_,
                      .payer = &payer});
}

std::vector<PlannedRows> PromptRows::give(std::uint32_t chunk_rows) {
  while (rows_ > 0) {
    Prompt* next = choose();
    if (next == nullptr) break;
    give_chunk(*next, chunk_rows);
  }
  std::vector<PlannedRows> parts;
  for (const Prompt& prompt : prompts_)
    if (prompt.n_rows > 0) parts.push_back({.sequence = prompt.sequence, .n_rows = prompt.n_rows});
  return parts;
}

/// The prompt that gets the next chunk, or null.
PromptRows::Prompt* PromptRows::choose() {
  TokenCounters::Count least = ~TokenCounters::Count{0};
  for (const Prompt& prompt : prompts_)
    if (prompt.n_rows < prompt.ready) least = std::min(least, prompt.payer->count);
  const auto rank = [&](const Prompt& prompt) {
    const auto ahead = TokenCounters::cost(short_work_, prompt.payer->weight);
    const bool goes_first = prompt.is_short && prompt.payer->count <= least + ahead;
    return std::pair(!goes_first, prompt.payer->count);
  };
  for (auto& [account, payer] : payers_) payer.is_seen = false;
  Prompt* best = nullptr;
  for (Prompt& prompt : prompts_) {
    if (prompt.n_rows == prompt.ready || std::exchange(prompt.payer->is_seen, true)) continue;
    if (best == nullptr || rank(prompt) < rank(*best)) best = &prompt;
  }
  return best;
}

/// Assigns as many rows as the remaining work allows; the first row of a step is always assigned.
void PromptRows::give_chunk(Prompt& prompt, std::uint32_t chunk_rows) {
  const std::uint32_t from = prompt.sequence->blocks.committed() + prompt.n_rows;
  std::uint32_t chunk = std::min({prompt.ready - prompt.n_rows, chunk_rows, rows_});
  const bool needs_logits = prompt.sequence->request.reports_prompt();
  const std::uint32_t own_logits = prompt.n_rows == 0 ? 1 : 0;
  if (needs_logits) chunk = std::min(chunk, logit_rows_ + own_logits);
  while (chunk > 0 && work_of_rows(from, chunk) > work_) --chunk;
  if (chunk == 0 && is_empty_) chunk = 1;
  if (chunk == 0) {
    prompt.ready = prompt.n_rows;  // the prompt gets no more rows in this step
    return;
  }
  const std::uint64_t work = work_of_rows(from, chunk);
  is_empty_ = false;
  if (needs_logits) logit_rows_ -= chunk - own_logits;
  prompt.n_rows += chunk;
  rows_ -= chunk;
  work_ -= std::min(work, work_);
  prompt.payer->count += prompt.sequence->cost_of(work, prompt.payer->weight);
}

}  // namespace leasehold
