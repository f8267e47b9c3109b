// The part of Scheduler that decides whose turn it is: which tenant is admitted next, and whose
// prompt gets the next chunk.
#include <algorithm>
#include <ranges>

#include "worker/schedule/scheduler.hpp"

namespace leasehold {

struct Scheduler::Turn {
  TokenCounters::Count count = 0;  // with the rows that admitted prompts still need
  const TenantId* id = nullptr;
  Tenant* tenant = nullptr;

  bool operator<(const Turn& other) const {
    if (count != other.count) return count < other.count;
    return tenant->last_admission < other.tenant->last_admission;
  }
};

void Scheduler::settle_active_tenants() {
  for (const TenantId& id : std::exchange(unsettled_tenants_, {})) {
    const bool is_known = tenants_.contains(id);
    counters_.set_active(id, is_known && (running_of(id) > 0 || waiting_of(id) > 0));
  }
}

std::vector<Scheduler::Turn> Scheduler::waiting_tenants() {
  std::vector<Turn> turns;
  for (auto& [id, tenant] : tenants_) {
    if (waiting_of(id) > 0) turns.push_back({counters_.of(id), &id, &tenant});
  }
  if (turns.empty()) return turns;
  std::map<TenantId, std::uint64_t> owed;
  for (const auto& sequence : running_) owed[sequence->request.tenant] += sequence->pending();
  for (Turn& turn : turns) turn.count += TokenCounters::cost(owed[*turn.id], weight_of(*turn.id));
  return turns;
}

void Scheduler::admit_least_served() {
  if (running_.size() >= limits_.max_batch_size) return;
  std::vector<Turn> turns = waiting_tenants();
  while (!turns.empty() && running_.size() < limits_.max_batch_size) {
    const auto next = std::ranges::min_element(turns, std::less{});
    if (admit_from(*next->id)) {
      next->count += TokenCounters::cost(running_.back()->pending(), weight_of(*next->id));
    } else {
      turns.erase(next);
    }
  }
}

/// Tries the most urgent request of each lease; equal ones in turn, after the lease admitted last.
/// A request that lacks quota blocks smaller requests of its tenant.
bool Scheduler::admit_from(const TenantId& id) {
  const Tenant& tenant = tenants_.at(id);
  if (running_of(id) >= tenant.quota.max_concurrent) return false;
  std::vector<LeaseId> turn;
  for (const LeaseId lease : tenant.leases) {
    Tenancy& tenancy = tenancies_.at(lease);
    while (reject_too_large(tenancy)) continue;
    if (!tenancy.waiting.empty()) turn.push_back(lease);
  }
  std::ranges::rotate(turn, std::ranges::upper_bound(turn, tenant.last_admitted));
  std::ranges::stable_sort(
      turn, {}, [this](LeaseId lease) { return urgency(tenancies_.at(lease).waiting.front()); });
  for (const LeaseId lease : turn) {
    const Admission admission = admit_one(tenancies_.at(lease));
    if (admission != Admission::LacksBlocks) return admission == Admission::Admitted;
  }
  return false;
}

/// Rows for the running prompts: each block of rows goes to the tenant with the least counter, and
/// there to the prompt admitted first.
std::vector<PlannedRows> Scheduler::prefill_least_served(std::uint32_t budget) const {
  struct Account {
    TokenCounters::Count count;
    std::uint32_t weight;
  };
  std::map<TenantId, Account> accounts;
  std::vector<PlannedRows> parts;
  std::vector<Account*> payers;  // of the parts
  for (const auto& sequence : running_) {
    if (sequence->pending() <= 1) continue;
    const TenantId& id = sequence->request.tenant;
    const auto account = accounts.try_emplace(id, counters_.of(id), weight_of(id)).first;
    parts.push_back({.sequence = sequence.get()});
    payers.push_back(&account->second);
  }
  for (budget = prefill_limit_.rows(planned_.decode, budget); budget > 0;) {
    std::optional<std::size_t> next;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].n_rows == rows_ready(*parts[i].sequence)) continue;
      if (!next || payers[i]->count < payers[*next]->count) next = i;
    }
    if (!next) break;
    PlannedRows& part = parts[*next];
    const std::uint32_t left = rows_ready(*part.sequence) - part.n_rows;
    const std::uint32_t chunk = std::min({left, limits_.tokens_per_block, budget});
    part.n_rows += chunk;
    budget -= chunk;
    payers[*next]->count += TokenCounters::cost(chunk, payers[*next]->weight);
  }
  std::erase_if(parts, [](const PlannedRows& part) { return part.n_rows == 0; });
  return parts;
}

}  // namespace leasehold
