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

/// Distributes the prompt rows of a step.
class Scheduler::PromptRows {
 public:
  /// `short_work`: a prompt that needs no more work than this is short.
  PromptRows(std::uint32_t rows, std::uint64_t work, std::uint64_t short_work)
      : rows_(rows), work_(work), short_work_(short_work) {}

  void add(Sequence& sequence, std::uint32_t ready, const TenantAccount& account) {
    Payer& payer =
        payers_.try_emplace(&account, *account.counter, account.quota.weight).first->second;
    prompts_.push_back({.sequence = &sequence,
                        .ready = ready,
                        .is_short = sequence.work_of(sequence.pending()) <= short_work_,
                        .payer = &payer});
  }

  /// Assigns rows, a chunk at a time, until none is left or no prompt can take one.
  std::vector<PlannedRows> give(std::uint32_t chunk_rows) {
    while (rows_ > 0) {
      Prompt* next = choose();
      if (next == nullptr) break;
      give_chunk(*next, chunk_rows);
    }
    std::vector<PlannedRows> parts;
    for (const Prompt& prompt : prompts_)
      if (prompt.n_rows > 0)
        parts.push_back({.sequence = prompt.sequence, .n_rows = prompt.n_rows});
    return parts;
  }

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

  /// The prompt of the payer with the least count. A short prompt goes first while its payer's
  /// count is at most a short prompt's work above the least. Among equal counts the first prompt is
  /// chosen.
  Prompt* choose() {
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
  void give_chunk(Prompt& prompt, std::uint32_t chunk_rows) {
    const std::uint32_t from = prompt.sequence->blocks.committed() + prompt.n_rows;
    std::uint32_t chunk = std::min({prompt.ready - prompt.n_rows, chunk_rows, rows_});
    while (chunk > 0 && work_of_rows(from, chunk) > work_) --chunk;
    if (chunk == 0 && is_empty_) chunk = 1;
    if (chunk == 0) {
      prompt.ready = prompt.n_rows;  // the prompt gets no more rows in this step
      return;
    }
    const std::uint64_t work = work_of_rows(from, chunk);
    is_empty_ = false;
    prompt.n_rows += chunk;
    rows_ -= chunk;
    work_ -= std::min(work, work_);
    prompt.payer->count += TokenCounters::cost(work, prompt.payer->weight);
  }

  std::uint32_t rows_;  // left
  std::uint64_t work_;  // left
  std::uint64_t short_work_;
  bool is_empty_ = true;
  std::map<const TenantAccount*, Payer> payers_;
  std::vector<Prompt> prompts_;
};

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
    prompts.add(*sequence, sequence->rows_ready(), *tenancies_.at(sequence->request.lease).account);
  }
  return prompts.give(limits_.tokens_per_block);
}

}  // namespace leasehold
