// The part of Scheduler that decides which tenant's request is admitted next, and which prompt gets
// the next chunk.
#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "worker/schedule/scheduler.hpp"

namespace leasehold {

struct Scheduler::Turn {
  TokenCounters::Count count = 0;  // includes the work that admitted prompts still need
  TenantAccount* tenant = nullptr;

  void add_work(std::uint64_t work) { count += TokenCounters::cost(work, tenant->quota.weight); }
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
  for (const auto& sequence : running_)
    tenancy_of(*sequence).account->owed += sequence->work_of(sequence->pending());
  for (Turn& turn : turns) turn.add_work(turn.tenant->owed);
  return turns;
}

void Scheduler::admit_least_served() {
  if (running_.size() >= limits_.max_batch_size) return;
  std::vector<Turn> turns = waiting_tenants();
  while (!turns.empty() && running_.size() < limits_.max_batch_size) {
    const auto next = std::ranges::min_element(turns, std::less{});
    if (admit_from(*next->tenant)) {
      const Sequence& admitted = *running_.all().back();
      next->add_work(admitted.work_of(admitted.pending()));
    } else {
      turns.erase(next);
    }
  }
}

/// Rejects the first waiting request when it no longer fits the quota. While the tenant runs other
/// requests here, the request waits, because this worker's part of the quota may still grow.
bool Scheduler::reject_too_large(Tenancy& tenancy) {
  if (tenancy.waiting.empty()) return false;
  const auto fits = check_blocks(tenancy.waiting.front());
  if (fits || tenancies_.running_of(*tenancy.account) > 0) return false;
  reject(tenancy.waiting.front(), fits.error());
  tenancy.waiting.pop_front();
  return true;
}

/// Tries the most urgent request of each lease; leases with equally urgent requests take turns,
/// starting after the lease admitted last. A request that lacks quota also holds back the smaller
/// requests of its tenant after it.
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

/// Assigns rows to the running prompts: each block of rows goes to the tenant with the least
/// counter, and within the tenant to the prompt admitted first. A prompt that fits in one step goes
/// before long ones.
std::vector<PlannedRows> Scheduler::prefill_least_served(std::uint32_t budget) const {
  constexpr std::uint32_t kAnyWork = ~std::uint32_t{0};
  const std::uint32_t work = prefill_limit_.rows(planned_.decode, kAnyWork);
  if (work == 0) return {};
  PromptRows prompts(budget, work, limits_.token_budget);
  for (const auto& sequence : running_) {
    if (sequence->pending() <= 1) continue;
    prompts.add(*sequence, *tenancies_.at(sequence->request.lease).account);
  }
  return prompts.give(limits_.tokens_per_block);
}

}  // namespace leasehold
