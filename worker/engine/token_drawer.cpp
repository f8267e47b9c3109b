#include "worker/engine/token_drawer.hpp"

#include <utility>

#include "common/machine/confined.hpp"
#include "worker/engine/token_rules.hpp"

namespace leasehold {

void TokenDrawer::draw_all(const StepPlan& plan, const StepBatch& batch, SequenceMask live) {
  drawn_.assign(plan.parts.size(), {});
  logit_rows_.clear();
  for (std::uint32_t i = 0; i < plan.parts.size(); ++i) {
    if ((live >> i & 1) == 0 || !read_prompt(plan.parts[i], i, batch)) continue;
    if (plan.parts[i].sequence->request.embedding) pool_rows(plan.parts[i], i, batch);
    if (batch.logit_index(i)) draw_tokens(plan.parts[i], i, batch);
  }
}

/// Computes the log probabilities of the prompt positions that the step completes, each in a unit
/// of its own like a draw. Returns false after a failure, and when the sequence is refused.
bool TokenDrawer::read_prompt(const PlannedRows& part, std::uint32_t index,
                              const StepBatch& batch) {
  const Sequence& sequence = *part.sequence;
  const PromptRequest& request = sequence.request;
  const std::uint32_t end = sequence.reported_after(part.n_rows - part.n_proposed);
  Drawn& drawn = drawn_[index];
  std::uint32_t logit_row = batch.prompt_logit_index(index);
  for (std::uint32_t at = request.reported_positions; at < end; ++at) {
    bool is_read = false;
    const auto read_if_live = [&](const LaunchPermit& permit) {
      if (!permit.is_live(index)) return;
      const auto read = catch_request_errors([&]() -> Result<void> {
        PromptToken token{.token = request.prompt[at]};
        if (at > 0)
          token.logprobs = TRY(row_logprobs(deps_.transformer->logits(logit_row++), token.token,
                                            *request.prompt_logprobs));
        drawn.prompt.push_back(std::move(token));
        return {};
      });
      if (!read) drawn = {.prompt = {}, .tokens = {}, .error = read.error()};
      is_read = read.has_value();
    };
    deps_.gate->run(batch.gates(), {LaunchSite::Sampling, 0, Touches::WeightsAndScratch},
                    read_if_live);
    if (!is_read) return false;
  }
  return true;
}

/// Adds the states of the step's rows to a copy of those of the sequence, because the commit may
/// discard the step. Each unit adds at most a block of rows. The last row ends the request.
void TokenDrawer::pool_rows(const PlannedRows& part, std::uint32_t index, const StepBatch& batch) {
  const std::uint32_t most = std::min(KvLayout::kBlockTokens, deps_.transformer->most_hidden());
  PooledStates states = part.sequence->request.embedding->pooled;
  const RowRange all = batch.pooled_rows(index);
  for (std::uint32_t begin = all.begin; begin < all.end; begin += most) {
    bool is_pooled = false;
    const auto pool_if_live = [&](const LaunchPermit& permit) {
      if (!permit.is_live(index)) return;
      const RowRange rows{begin, std::min(begin + most, all.end)};
      const auto pooled = catch_request_errors([&] { return pool(rows, states); });
      if (!pooled) drawn_[index].error = pooled.error();
      is_pooled = pooled.has_value();
    };
    deps_.gate->run(batch.gates(), {LaunchSite::Sampling, 0, Touches::WeightsAndScratch},
                    pool_if_live);
    if (!is_pooled) return;
  }
  drawn_[index].pooled = std::move(states);
  if (part.wants_token)
    drawn_[index].tokens.push_back(
        {.sampled = {}, .is_text = false, .ends = CompletionReason::MaxTokensReached});
}

/// Errors: NumericFault.
Result<void> TokenDrawer::pool(RowRange rows, PooledStates& states) const {
  const std::uint32_t n_rows = rows.end - rows.begin;
  const std::span<const float> values = deps_.transformer->hidden(rows.begin, n_rows);
  const std::size_t width = values.size() / n_rows;
  for (std::uint32_t row = 0; row < n_rows; ++row) states.add(values.subspan(row * width, width));
  if (states.is_finite()) return {};
  return fail(Errc::NumericFault,
              "a hidden state of the prompt is not finite; send the request again, and check the "
              "model file if it happens again");
}

/// Draws row by row, until a drawn token differs from the proposal that the next row was computed
/// for. Each row is one unit, because with a large vocabulary a row takes longer than any other
/// unit of the step. The draw after a right proposal needs the token rules advanced by that
/// proposal. The rules are restored afterwards, because the commit may still discard the tokens.
/// When the copy to restore from cannot be allocated, only the first row is drawn.
void TokenDrawer::draw_tokens(PlannedRows part, std::uint32_t index, const StepBatch& batch) {
  Sequence& sequence = *part.sequence;
  std::optional<TokenRules::Mark> before;
  const auto mark = [&]() -> Result<void> {
    before = sequence.rules->mark();
    return {};
  };
  if (part.n_proposed > 0 && !catch_request_errors(mark)) part.n_proposed = 0;
  const std::uint32_t first = *batch.logit_index(index);
  bool continues = true;
  for (std::uint32_t row = 0; continues && row <= part.n_proposed; ++row) {
    continues = false;
    const auto draw_if_live = [&](const LaunchPermit& permit) {
      if (!permit.is_live(index)) return;
      const auto drawn =
          catch_request_errors([&] { return draw_row(part, drawn_[index].tokens, first + row); });
      continues = drawn.value_or(false);
      // A failure after the first row is not reported: the sequence keeps the tokens drawn before
      // it, and the next step meets the failure again.
      if (!drawn && row == 0) drawn_[index] = {.prompt = {}, .tokens = {}, .error = drawn.error()};
      logit_rows_[sequence.request.engine_request_id] = first + row;
    };
    deps_.gate->run(batch.gates(), {LaunchSite::Sampling, 0, Touches::WeightsAndScratch},
                    draw_if_live);
  }
  if (before) sequence.rules->return_to(*std::move(before));
}

/// Appends the token of one row. Returns true when the next row was computed for this token and may
/// be drawn.
Result<bool> TokenDrawer::draw_row(const PlannedRows& part, std::vector<DrawnToken>& drawn,
                                   std::uint32_t logit_row) {
  Sequence& sequence = *part.sequence;
  const std::size_t row = drawn.size();
  const std::span<const TokenId> history =
      row == 0 ? std::span<const TokenId>(sequence.tokens) : history_;
  drawn.push_back(TRY(draw(sequence, history, logit_row)));
  const DrawnToken& token = drawn.back();
  const bool is_right =
      row < part.n_proposed && token.is_text && token.sampled.token == sequence.proposals[row];
  if (!is_right) return false;
  if (row == 0) history_ = sequence.tokens;
  history_.push_back(token.sampled.token);
  sequence.rules->accept(token.sampled.token);
  return sequence.rules->is_ready() && !sequence.rules->over();
}

/// Draws the token after `history`, which is the sequence's tokens and those drawn in this step.
Result<DrawnToken> TokenDrawer::draw(const Sequence& sequence, std::span<const TokenId> history,
                                     std::uint32_t logit_row) {
  const TokenRules& rules = *sequence.rules;
  // A rebound text may be complete already: its last token was delivered, but its end was not.
  if (const auto over = rules.over()) return DrawnToken{.is_text = false, .ends = over};
  const DrawnToken full{.is_text = false, .ends = deps_.scheduler->fit().capacity_end(sequence)};
  const bool emits_none = sequence.request.max_emitted_tokens == 0;  // only checks the logits
  if (full.ends && !emits_none) return full;
  const SamplingParams& params = sequence.request.sampling;
  const SampleInput input{
      .logits = {},
      .params = &params,
      .history = history,
      .position = static_cast<std::uint32_t>(history.size() - sequence.request.prompt.size()),
      .allowed = rules.allowed()};
  DrawnToken drawn;
  drawn.sampled = TRY(sample_row(logit_row, input));
  if (emits_none) return full;
  drawn.ends = rules.ends_before(drawn.sampled.token);
  drawn.is_text = !drawn.ends;
  return drawn;
}

/// When the largest logits suffice for the draw, the whole row is not copied from the device.
Result<SampledToken> TokenDrawer::sample_row(std::uint32_t logit_row, SampleInput input) {
  const std::size_t deciding = top_logits_needed(*input.params, input.allowed);
  const auto top = deciding > 0 ? deps_.transformer->top_logits(logit_row) : std::nullopt;
  if (top && top->all_finite && top->tokens.size() >= deciding) {
    std::vector<CandidateToken> largest;
    for (const TokenLogit& each : top->tokens)
      largest.push_back({static_cast<TokenId>(each.token), each.logit});
    return sample_from_top(largest, input, scratch_);
  }
  input.logits = deps_.transformer->logits(logit_row);
  return sample(input, scratch_);
}

std::span<const TokenId> TokenDrawer::next_tokens(std::uint32_t part) {
  next_tokens_.clear();
  for (const DrawnToken& drawn : drawn_[part].tokens)
    if (drawn.is_text) next_tokens_.push_back(drawn.sampled.token);
  return next_tokens_;
}

std::optional<std::uint32_t> TokenDrawer::logit_row(const RequestId& engine_request_id) const {
  const auto found = logit_rows_.find(engine_request_id);
  if (found == logit_rows_.end()) return std::nullopt;
  return found->second;
}

std::uint32_t TokenDrawer::rows_kept(const PlannedRows& part, std::uint32_t index) const {
  return part.rows_kept(drawn_[index].tokens.size());
}

}  // namespace leasehold
