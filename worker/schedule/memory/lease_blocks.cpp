#include "worker/schedule/memory/lease_blocks.hpp"

#include "common/expects.hpp"

namespace leasehold {

void LeaseBlocks::add_extent(LeaseId lease, ExtentId extent, std::uint32_t blocks) {
  expects(tenancies_.contains(lease), "an extent belongs to a known lease");
  tenancies_.at(lease).pool.add_extent(extent, blocks);
}

void LeaseBlocks::add_swap_extent(LeaseId lease, ExtentId extent, std::uint32_t blocks) {
  expects(tenancies_.contains(lease), "an extent belongs to a known lease");
  tenancies_.at(lease).swap.add_extent(extent, blocks);
  tenancies_.at(lease).growth.grant_swap();
}

std::vector<ExtentId> LeaseBlocks::remove_free_extents(LeaseId lease, std::uint32_t count,
                                                       wire::MemoryPool pool) {
  const auto found = tenancies_.find(lease);
  if (found == tenancies_.end() || transfers_.has_of(lease)) return {};
  Tenancy& tenancy = found->second;
  if (pool == wire::MemoryPool::Swap) return tenancy.swap.remove_free_extents(count);
  return kv_.remove_free_extents(tenancy, count);
}

std::uint32_t LeaseBlocks::adopt(LeaseId lease, const AdoptedRecords& records) {
  const auto found = tenancies_.find(lease);
  if (found == tenancies_.end()) return 0;
  Tenancy& tenancy = found->second;
  return records.cache(tenancy.tenant, tenancy.pool, tenancy.prefixes);
}

const BlockPool* LeaseBlocks::pool_of(LeaseId lease) const {
  const auto found = tenancies_.find(lease);
  return found == tenancies_.end() ? nullptr : &found->second.pool;
}

std::vector<std::pair<LeaseId, BlockId>> LeaseBlocks::take_released_records() {
  std::vector<std::pair<LeaseId, BlockId>> released;
  for (const auto& [lease, tenancy] : tenancies_.busy()) {
    for (const BlockId block : tenancy->pool.take_released_records())
      released.emplace_back(lease, block);
  }
  return released;
}

}  // namespace leasehold
