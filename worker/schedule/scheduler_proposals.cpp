// The part of Scheduler that gives rows to proposed tokens.
#include <algorithm>
#include <utility>

#include "worker/schedule/scheduler.hpp"

namespace leasehold {

/// Adds rows of proposals to decoding sequences, one at a time, first to the tenant with the least
/// counter. Adds none in a step with prompts: prompt rows delay the streams already, and the time
/// of the proposals could not be measured separately.
void Scheduler::add_proposals(StepPlan& plan) {
  if (limits_.speculate == 0 || running_.has_prompts() || planned_.decode == 0) return;
  const std::vector<PlannedRows*> parts = proposing_parts(plan);
  if (parts.empty()) return;
  std::uint32_t room = rows_for_proposals(plan, planned_.decode);
  for (bool any = true; std::exchange(any, false);) {
    for (PlannedRows* part : parts) {
      const auto proposed = static_cast<std::uint32_t>(part->sequence->proposals.size());
      const std::uint32_t worth = proposals_worth(*part->sequence, planned_.decode, proposed);
      if (room == 0 || part->n_proposed == worth) continue;
      if (!reserve_proposed(*part->sequence, part->n_rows + 1)) continue;
      ++part->n_rows;
      ++part->n_proposed;
      ++planned_.proposed;
      --room;
      any = true;
    }
  }
}

/// Ignores the tenants' turns and free blocks, which only plan() knows.
StepPlan Scheduler::plan_proposals() const {
  StepPlan plan;
  if (limits_.speculate == 0 || running_.has_prompts()) return plan;
  for (const auto& sequence : running_)
    if (sequence->pending() == 1 && sequence->rows_ready() == 1)
      plan.parts.push_back({.sequence = sequence.get()});
  if (plan.parts.empty()) return plan;
  const auto decode_rows = static_cast<std::uint32_t>(plan.parts.size());
  const std::uint32_t room = rows_for_proposals(plan, decode_rows);
  const std::uint32_t of_each = (room + decode_rows - 1) / decode_rows;
  for (PlannedRows& part : plan.parts)
    part.n_proposed = proposals_worth(*part.sequence, decode_rows, of_each);
  return plan;
}

/// The number of rows for the proposals of all sequences in a step.
std::uint32_t Scheduler::rows_for_proposals(const StepPlan& plan, std::uint32_t decode_rows) const {
  const TenantId& first = plan.parts.front().sequence->request.tenant;
  const bool shared = std::ranges::any_of(plan.parts, [&first](const PlannedRows& part) {
    return part.sequence->request.tenant != first;
  });
  const std::uint32_t most = std::min(limits_.token_budget, limits_.max_logit_rows());
  return proposal_limit_.rows(decode_rows, shared, most - std::min(most, decode_rows));
}

/// The parts of sequences with proposals, in the order of their turns.
std::vector<PlannedRows*> Scheduler::proposing_parts(StepPlan& plan) const {
  std::vector<PlannedRows*> parts;
  for (PlannedRows& part : plan.parts)
    if (part.wants_token && !part.sequence->proposals.empty()) parts.push_back(&part);
  std::ranges::stable_sort(parts, {}, [this](const PlannedRows* part) {
    return *tenancies_.at(part->sequence->request.lease).account->counter;
  });
  return parts;
}

/// The number of `proposed` tokens that are worth a row. No token is drawn beyond the request's
/// token limit or the context, so proposals beyond them get no row.
std::uint32_t Scheduler::proposals_worth(const Sequence& sequence, std::uint32_t decode_rows,
                                         std::uint32_t proposed) const {
  const auto known = static_cast<std::uint32_t>(sequence.tokens.size());
  const auto left = [](std::uint32_t limit, std::uint32_t used) {
    return limit > used ? limit - used - 1 : 0;
  };
  const std::uint32_t most = std::min(
      {proposed, limits_.speculate, left(sequence.request.max_emitted_tokens, sequence.emitted()),
       left(limits_.max_context, known)});
  return proposal_limit_.worth(sequence.acceptance, decode_rows, most);
}

/// Takes a block only if afterwards each running sequence of the lease could still take its next
/// block, and each sequence of the tenant could do so within the quota.
bool Scheduler::reserve_proposed(Sequence& sequence, std::uint32_t n_rows) {
  Tenancy& tenancy = tenancy_of(sequence);
  const std::uint32_t positions = sequence.blocks.committed() + n_rows;
  const std::uint32_t held = blocks_held(sequence);
  const std::uint32_t more =
      limits_.blocks_for(positions) - std::min(limits_.blocks_for(positions), held);
  if (more == 0) return true;
  const bool is_free =
      tenancy.pool.free_blocks() >= more + tenancy.running &&
      tenancies_.held_by(tenancy.tenant) + more + tenancies_.running_of(*tenancy.account) <=
          tenancies_.limit_of(sequence.request);
  return is_free && sequence.blocks.reserve(positions, tenancy.pool).has_value();
}

/// Also counts a proposal that got no row, because comparing it with the drawn token costs nothing.
void Scheduler::note_proposals(const PlannedRows& part, const std::vector<DrawnToken>& drawn) {
  const std::vector<TokenId> proposals = std::exchange(part.sequence->proposals, {});
  proposal_counters_.proposed += part.n_proposed;
  if (drawn.size() > 1) proposal_counters_.accepted += drawn.size() - 1;
  const auto compared = static_cast<std::uint32_t>(std::min(proposals.size(), drawn.size()));
  std::uint32_t right = 0;
  while (right < compared && drawn[right].sampled.token == proposals[right]) ++right;
  part.sequence->acceptance.note(right, right < compared);
}

void Scheduler::note_proposing(Duration took) {
  proposal_counters_.time += took;
  uncharged_proposing_ += took;
}

/// A step with proposals is charged with the time of making them, including the time in earlier
/// steps that only prepared proposals.
void Scheduler::note_duration(Duration step) {
  if (planned_.proposed == 0) prefill_limit_.note(step, planned_);
  if (planned_.proposed > 0) step += std::exchange(uncharged_proposing_, Duration::zero());
  proposal_limit_.note(step, planned_);
}

}  // namespace leasehold
