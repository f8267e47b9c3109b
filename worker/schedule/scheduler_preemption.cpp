// The part of Scheduler that preempts a running sequence when KV blocks run out.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "worker/schedule/scheduler.hpp"

namespace leasehold {

/// Preempts one sequence for each lease whose growth the broker denied, and one for each tenant
/// over its quota; the freed blocks may be enough for the others. Returns true when it freed
/// blocks.
bool Scheduler::relieve_starved() {
  std::set<TenantId> over_quota;
  bool has_freed = false;
  for (auto& [lease, tenancy] : tenancies_)
    if (std::exchange(tenancy.awaits_swap, false)) tenancy.growth_denied = 0;
  while (!starved_.empty()) {
    const Starved next = starved_.front();
    starved_.erase(starved_.begin());
    Tenancy& tenancy = tenancy_of(*next.sequence);
    const bool is_due =
        next.over_quota ? over_quota.insert(tenancy.tenant).second : take_refusal(tenancy);
    if (!is_due) continue;
    Sequence* victim = choose_victim(next);
    const auto choice = victim == nullptr ? SwapPlanner::Choice::Drop
                                          : swap_.choose(*victim, prefill_limit_.row_ns());
    if (choice == SwapPlanner::Choice::Await) {
      tenancy.awaits_swap = !next.over_quota;
      continue;
    }
    has_freed = true;
    std::erase_if(starved_, [victim](const Starved& other) { return other.sequence == victim; });
    if (victim == nullptr) {
      end_starved(next);
    } else {
      const bool is_at_quota = next.over_quota || tenancy.is_at_quota;
      preempt(*victim, is_at_quota ? Errc::QuotaBlocks : Errc::PoolExhausted,
              choice == SwapPlanner::Choice::SwapOut);
    }
  }
  return has_freed;
}

/// Consumes the refusal of a GrowthRequest. Returns true when the refused request was not for more
/// blocks than the running sequences want.
bool Scheduler::take_refusal(Tenancy& tenancy) {
  const auto refused = std::exchange(tenancy.growth_denied, std::nullopt);
  return refused && *refused <= tenancy.blocks_wanted;
}

/// Chooses among the sequences that share the exhausted blocks or quota, except the oldest of the
/// highest priority: the lowest priority, then the least work to repeat. Returns null when only one
/// sequence shares them.
Sequence* Scheduler::choose_victim(const Starved& starved) const {
  const PromptRequest& lacks = starved.sequence->request;
  std::vector<Sequence*> sharing;
  for (const auto& sequence : running_) {
    const PromptRequest& request = sequence->request;
    const bool shares =
        starved.over_quota ? request.tenant == lacks.tenant : request.lease == lacks.lease;
    if (shares) sharing.push_back(sequence.get());
  }
  const auto rank = [](const Sequence* sequence) {
    return std::tuple(-sequence->request.priority, sequence->request.arrival);
  };
  sharing.erase(std::ranges::min_element(sharing, {}, rank));
  if (sharing.empty()) return nullptr;
  const auto lost_work = [](const Sequence* sequence) {
    const PromptRequest& request = sequence->request;
    return std::tuple(request.priority, sequence->blocks.committed(), ~request.arrival);
  };
  return *std::ranges::min_element(sharing, {}, lost_work);
}

/// Swaps out the blocks of the sequence or drops them, and queues its request with its emitted
/// tokens. Full blocks stay cached until their room is needed, so that fewer rows are computed
/// again or fewer blocks copied back.
void Scheduler::preempt(Sequence& victim, Errc cause, bool to_swap) {
  Tenancy& tenancy = tenancy_of(victim);
  const std::uint32_t available = tenancy.available_blocks();
  PromptRequest request = request_to_wait(victim);
  const std::uint32_t swapped_blocks = to_swap ? swap_.swap_out(victim) : 0;
  if (!to_swap) free_blocks(victim, {});
  events_.add(Preempted{.engine_request_id = request.engine_request_id,
                        .cause = cause,
                        .freed_blocks = tenancy.available_blocks() - available,
                        .swapped_blocks = swapped_blocks,
                        .emitted_tokens = victim.emitted()});
  tenancies_.note_preemption(tenancy);
  std::unique_ptr<Sequence> stopped = stop_running(victim);
  if (to_swap) tenancy.swapped.emplace(request.engine_request_id, std::move(stopped));
  enqueue(std::move(request));
}

PromptRequest Scheduler::request_to_wait(const Sequence& victim) {
  PromptRequest request = victim.request;
  request.emitted.assign(victim.tokens.begin() + static_cast<std::ptrdiff_t>(request.prompt.size()),
                         victim.tokens.end());
  request.charged = victim.charged_if_stopped();
  request.rebound_from.reset();  // the rebind is already reported
  return request;
}

void Scheduler::end_starved(const Starved& starved) {
  const Tenancy& tenancy = tenancy_of(*starved.sequence);
  const std::string why =
      starved.over_quota
          ? fmt::format("tenant {} may hold {}; ask for fewer tokens, or raise --max-blocks",
                        tenancy.tenant.value, tenancies_.limit_of(starved.sequence->request))
          : reason_of_refusal(tenancy);
  const auto detail =
      fmt::format("the request needs {} more KV blocks, lease {} holds {} and {}", starved.blocks,
                  to_string(tenancy.lease), tenancy.used_blocks(), why);
  const bool is_bound_of_texts = tenancy.is_shared && tenancy.is_at_quota;
  const Errc code = is_bound_of_texts ? Errc::QuotaBlocks : Errc::OutOfBlocks;
  end_sequence(*starved.sequence, {.reason = CompletionReason::EngineError,
                                   .error = Error{code, detail, scope_of(tenancy)}});
}

}  // namespace leasehold
