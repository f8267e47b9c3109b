#include "worker/schedule/preemption.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <tuple>

namespace leasehold {

void Preemption::begin_plan() {
  starved_.clear();
  for (const auto& [lease, tenancy] : tenancies_.busy()) tenancy->growth.begin_plan();
}

bool Preemption::relieve(std::optional<double> row_ns,
                         const std::function<void(const Relief&)>& stop) {
  std::set<TenantId> over_quota;
  bool has_stopped = false;
  for (const auto& [lease, tenancy] : tenancies_.busy()) tenancy->growth.renew_denial();
  while (!starved_.empty()) {
    const Starved next = starved_.front();
    starved_.erase(starved_.begin());
    Tenancy& tenancy = tenancies_.at(next.sequence->request.lease);
    const bool is_due =
        next.over_quota ? over_quota.insert(tenancy.tenant).second : tenancy.growth.take_denial();
    if (!is_due) continue;
    Sequence* victim = choose_victim(next);
    const auto choice =
        victim == nullptr ? SwapPlanner::Choice::Drop : swap_.choose(*victim, row_ns);
    if (choice == SwapPlanner::Choice::Await) {
      tenancy.growth.await_swap(!next.over_quota);
      continue;
    }
    has_stopped = true;
    std::erase_if(starved_, [victim](const Starved& other) { return other.sequence == victim; });
    if (victim == nullptr) {
      stop({.sequence = next.sequence, .end = error_of(next)});
    } else {
      const bool is_at_quota = next.over_quota || tenancy.growth.is_at_quota();
      stop({.sequence = victim,
            .cause = is_at_quota ? Errc::QuotaBlocks : Errc::PoolExhausted,
            .to_swap = choice == SwapPlanner::Choice::SwapOut});
    }
  }
  return has_stopped;
}

/// Chooses among the sequences that share the exhausted blocks or quota, except the oldest of the
/// highest priority: the lowest priority, then the least work to repeat. Returns null when only one
/// sequence shares them.
Sequence* Preemption::choose_victim(const Starved& starved) const {
  const PromptRequest& lacks = starved.sequence->request;
  std::vector<Sequence*> sharing;
  for (const auto& sequence : running_) {
    const PromptRequest& request = sequence->request;
    const bool shares =
        starved.over_quota ? request.tenant == lacks.tenant : request.lease == lacks.lease;
    if (shares) sharing.push_back(sequence.get());
  }
  if (sharing.size() < 2) return nullptr;
  const auto rank = [](const Sequence* sequence) {
    return std::tuple(-sequence->request.priority, sequence->request.arrival);
  };
  sharing.erase(std::ranges::min_element(sharing, {}, rank));
  const auto lost_work = [](const Sequence* sequence) {
    const PromptRequest& request = sequence->request;
    return std::tuple(request.priority, sequence->blocks.committed(), ~request.arrival);
  };
  return *std::ranges::min_element(sharing, {}, lost_work);
}

/// The error of a sequence that runs alone and does not fit.
Error Preemption::error_of(const Starved& starved) const {
  const PromptRequest& request = starved.sequence->request;
  const Tenancy& tenancy = tenancies_.at(request.lease);
  const std::string why =
      starved.over_quota
          ? fmt::format("tenant {} may hold {}; ask for fewer tokens, or raise --max-blocks",
                        tenancy.tenant.value, tenancies_.limit_of(request))
          : reason_of_refusal(tenancy);
  const auto detail =
      fmt::format("the request needs {} more KV blocks, lease {} holds {} and {}", starved.blocks,
                  to_string(tenancy.lease), tenancy.used_blocks(), why);
  const bool is_bound_of_texts = tenancy.is_shared && tenancy.growth.is_at_quota();
  const Errc code = is_bound_of_texts ? Errc::QuotaBlocks : Errc::OutOfBlocks;
  return {code, detail, scope_of(tenancy)};
}

PromptRequest request_to_wait(const Sequence& victim) {
  PromptRequest request = victim.request;
  request.emitted.assign(victim.tokens.begin() + static_cast<std::ptrdiff_t>(request.prompt.size()),
                         victim.tokens.end());
  request.charged = victim.charged_if_stopped();
  request.rebound_from.reset();  // the rebind is already reported
  return request;
}

}  // namespace leasehold
