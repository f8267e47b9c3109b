// The part of Scheduler that adopts sequence records and lists the outdated ones.
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

std::uint32_t Scheduler::adopt(LeaseId lease, const AdoptedRecords& records) {
  const auto found = tenancies_.find(lease);
  if (found == tenancies_.end()) return 0;
  Tenancy& tenancy = found->second;
  return records.cache(tenancy.tenant, tenancy.pool, tenancy.prefixes);
}

const BlockPool* Scheduler::pool_of(LeaseId lease) const {
  const auto found = tenancies_.find(lease);
  return found == tenancies_.end() ? nullptr : &found->second.pool;
}

std::vector<std::pair<LeaseId, BlockId>> Scheduler::take_released_records() {
  std::vector<std::pair<LeaseId, BlockId>> released;
  for (auto& [lease, tenancy] : tenancies_) {
    for (const BlockId block : tenancy.pool.take_released_records())
      released.emplace_back(lease, block);
  }
  return released;
}

}  // namespace leasehold
