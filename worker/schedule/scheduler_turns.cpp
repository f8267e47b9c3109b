// The part of Scheduler that decides whose turn it is: which tenant is admitted next, and whose
// prompt gets the next chunk.
#include <algorithm>
#include <ranges>

#include "worker/schedule/scheduler.hpp"

namespace leasehold {

struct Scheduler::Turn {
  TokenCounters::Count count = 0;  // with the rows that admitted prompts still need
  TenantAccount* tenant = nullptr;

  void add_rows(std::uint64_t rows) { count += TokenCounters::cost(rows, tenant->quota.weight); }
  bool operator<(const Turn& other) const {
    if (count != other.count) return count < other.count;
    return tenant->last_admission < other.tenant->last_admission;
  }
};

std::vector<Scheduler::Turn> Scheduler::waiting_tenants() {
  std::vector<Turn> turns;
  for (TenantAccount* account : tenancies_.waiting_accounts())
    turns.push_back({*account->counter, account});
  if (turns.empty()) return turns;
  for (const auto& sequence : running_) tenancy_of(*sequence).account->owed += sequence->pending();
  for (Turn& turn : turns) turn.add_rows(turn.tenant->owed);
  return turns;
}

void Scheduler::admit_least_served() {
  if (running_.size() >= limits_.max_batch_size) return;
  std::vector<Turn> turns = waiting_tenants();
  while (!turns.empty() && running_.size() < limits_.max_batch_size) {
    const auto next = std::ranges::min_element(turns, std::less{});
    if (admit_from(*next->tenant)) {
      next->add_rows(running_.back()->pending());
    } else {
      turns.erase(next);
    }
  }
}

/// A request that the quota can no longer hold does not wait for blocks that never come. While the
/// tenant runs others here, the quota of this worker may still grow.
bool Scheduler::reject_too_large(Tenancy& tenancy) {
  if (tenancy.waiting.empty()) return false;
  const auto fits = check_blocks(tenancy.waiting.front());
  if (fits || tenancies_.running_of(*tenancy.account) > 0) return false;
  reject(tenancy.waiting.front(), fits.error());
  tenancy.waiting.pop_front();
  return true;
}

/// Tries the most urgent request of each lease; equal ones in turn, after the lease admitted last.
/// A request that lacks quota blocks smaller requests of its tenant.
bool Scheduler::admit_from(const TenantAccount& tenant) {
  if (tenancies_.running_of(tenant) >= tenant.quota.max_concurrent) return false;
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
  struct Payer {
    TokenCounters::Count count;
    std::uint32_t weight;
  };
  std::map<const TenantAccount*, Payer> all;
  std::vector<PlannedRows> parts;
  std::vector<Payer*> payers;  // of the parts
  for (const auto& sequence : running_) {
    if (sequence->pending() <= 1) continue;
    const TenantAccount* account = tenancies_.at(sequence->request.lease).account;
    const auto payer = all.try_emplace(account, *account->counter, account->quota.weight).first;
    parts.push_back({.sequence = sequence.get()});
    payers.push_back(&payer->second);
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
