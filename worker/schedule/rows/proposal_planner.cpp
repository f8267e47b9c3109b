#include "worker/schedule/rows/proposal_planner.hpp"

#include <algorithm>
#include <utility>

namespace leasehold {

/// Ignores the tenants' turns and free blocks, which only `add_rows` knows.
StepPlan ProposalPlanner::plan() const {
  StepPlan plan;
  if (limits_.speculate == 0 || running_.has_prompts()) return plan;
  for (const auto& sequence : running_)
    if (sequence->pending() == 1 && sequence->rows_ready() == 1)
      plan.parts.push_back({.sequence = sequence.get()});
  if (plan.parts.empty()) return plan;
  const auto decode_rows = static_cast<std::uint32_t>(plan.parts.size());
  const std::uint32_t room = rows_in_step(plan, decode_rows);
  const std::uint32_t of_each = (room + decode_rows - 1) / decode_rows;
  for (PlannedRows& part : plan.parts)
    part.n_proposed = worth(*part.sequence, decode_rows, of_each);
  return plan;
}

/// Adds the rows one at a time, first to the tenant with the least counter.
std::uint32_t ProposalPlanner::add_rows(StepPlan& plan, std::uint32_t decode_rows) {
  if (limits_.speculate == 0 || running_.has_prompts() || decode_rows == 0) return 0;
  const std::vector<PlannedRows*> parts = proposing_parts(plan);
  if (parts.empty()) return 0;
  const std::uint32_t room = rows_in_step(plan, decode_rows);
  std::uint32_t added = 0;
  for (bool any = true; std::exchange(any, false);) {
    for (PlannedRows* part : parts) {
      const auto proposed = static_cast<std::uint32_t>(part->sequence->proposals.size());
      if (added == room || part->n_proposed == worth(*part->sequence, decode_rows, proposed))
        continue;
      if (!kv_.reserve_proposed(*part->sequence, part->n_rows + 1)) continue;
      ++part->n_rows;
      ++part->n_proposed;
      ++added;
      any = true;
    }
  }
  return added;
}

/// The number of rows for the proposals of all sequences in a step.
std::uint32_t ProposalPlanner::rows_in_step(const StepPlan& plan, std::uint32_t decode_rows) const {
  const TenantId& first = plan.parts.front().sequence->request.tenant;
  const bool shared = std::ranges::any_of(plan.parts, [&first](const PlannedRows& part) {
    return part.sequence->request.tenant != first;
  });
  const std::uint32_t most = std::min(limits_.token_budget, limits_.max_logit_rows());
  return limit_.rows(decode_rows, shared, most - std::min(most, decode_rows));
}

/// The parts of sequences with proposals, in the order of their turns. Rows that are computed again
/// get none, so that a step with proposals is followed by one that commits.
std::vector<PlannedRows*> ProposalPlanner::proposing_parts(StepPlan& plan) const {
  std::vector<PlannedRows*> parts;
  for (PlannedRows& part : plan.parts)
    if (part.wants_token && part.n_rows == 1 && !part.sequence->proposals.empty())
      parts.push_back(&part);
  std::ranges::stable_sort(parts, {}, [this](const PlannedRows* part) {
    const Sequence& sequence = *part->sequence;
    const TenantAccount& account = *tenancies_.at(sequence.request.lease).account;
    return std::pair(sequence.is_scavenger, account.counter_of(sequence.is_scavenger));
  });
  return parts;
}

/// The number of `proposed` tokens that are worth a row. No token is drawn beyond the request's
/// token limit or the context, so proposals beyond them get no row. With a recurrent state, neither
/// do those beyond its next snapshot, nor those after the last row of a prompt: if the request
/// stopped before that row is committed, the drawn tokens would be charged again, as its prompt.
std::uint32_t ProposalPlanner::worth(const Sequence& sequence, std::uint32_t decode_rows,
                                     std::uint32_t proposed) const {
  const bool repeats = sequence.blocks.recurrent().exists();
  if (repeats && sequence.blocks.committed() < known_tokens(sequence.request)) return 0;
  const auto known = static_cast<std::uint32_t>(sequence.tokens.size());
  const auto left = [](std::uint32_t limit, std::uint32_t used) {
    return limit > used ? limit - used - 1 : 0;
  };
  const std::uint32_t most = std::min(
      {proposed, limits_.speculate, left(sequence.request.max_emitted_tokens, sequence.emitted()),
       left(limits_.max_context, known), sequence.rows_to_snapshot() - 1});
  return limit_.worth(sequence.acceptance, decode_rows, most, repeats);
}

void ProposalPlanner::note_drawn(const PlannedRows& part, const std::vector<DrawnToken>& drawn) {
  const std::vector<TokenId> proposals = std::exchange(part.sequence->proposals, {});
  counters_.proposed += part.n_proposed;
  if (drawn.size() > 1) counters_.accepted += drawn.size() - 1;
  const auto compared = static_cast<std::uint32_t>(std::min(proposals.size(), drawn.size()));
  std::uint32_t right = 0;
  while (right < compared && drawn[right].sampled.token == proposals[right]) ++right;
  part.sequence->acceptance.note(right, right < compared);
}

void ProposalPlanner::note_proposing(Duration took) {
  counters_.time += took;
  uncharged_ += took;
}

void ProposalPlanner::note_duration(Duration step, const StepRows& rows) {
  if (rows.proposed > 0) step += std::exchange(uncharged_, Duration::zero());
  limit_.note(step, rows);
}

}  // namespace leasehold
