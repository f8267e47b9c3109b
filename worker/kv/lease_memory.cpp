#include "worker/kv/lease_memory.hpp"

#include <fmt/format.h>

namespace leasehold {

void LeaseMemory::add(LeaseId lease, ExtentId extent, LeasedMapping mapping) {
  const std::scoped_lock lock(mutex_);
  leases_[lease].insert_or_assign(extent, std::move(mapping));
}

bool LeaseMemory::has(LeaseId lease, ExtentId extent) const {
  const std::scoped_lock lock(mutex_);
  const auto found = leases_.find(lease);
  return found != leases_.end() && found->second.contains(extent);
}

std::vector<BlockId> LeaseMemory::blocks(LeaseId lease) const {
  const std::scoped_lock lock(mutex_);
  std::vector<BlockId> blocks;
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return blocks;
  for (const auto& [extent, mapping] : found->second) {
    const auto count = static_cast<std::uint32_t>(mapping.size_bytes() / block_size_bytes_);
    for (std::uint32_t i = 0; i < count; ++i) blocks.push_back({extent, i});
  }
  return blocks;
}

std::vector<LeaseMemory::Extent> LeaseMemory::extents(LeaseId lease) const {
  const std::scoped_lock lock(mutex_);
  std::vector<Extent> extents;
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return extents;
  for (const auto& [extent, mapping] : found->second)
    extents.push_back({.base = mapping.writable_base(), .size_bytes = mapping.size_bytes()});
  return extents;
}

bool LeaseMemory::drop(LeaseId lease) {
  std::unique_lock lock(mutex_);
  const auto dropped = leases_.extract(lease);
  if (!dropped.empty()) {
    for (const auto& [extent, mapping] : dropped.mapped())
      if (mapping.addresses()) addresses_.emplace(lease, mapping.addresses());
  }
  lock.unlock();  // unmapping is slow, and steps need addresses of other leases meanwhile
  return !dropped.empty();
}

void LeaseMemory::release_addresses(LeaseId lease) {
  const std::scoped_lock lock(mutex_);
  addresses_.erase(lease);
}

void LeaseMemory::remove(LeaseId lease, std::span<const ExtentId> extents) {
  const std::scoped_lock lock(mutex_);
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return;
  for (const ExtentId extent : extents) found->second.erase(extent);
}

Result<Leased<std::byte>> LeaseMemory::address(LeaseId lease, BlockId block) const {
  const std::scoped_lock lock(mutex_);
  const auto of_lease = leases_.find(lease);
  if (of_lease != leases_.end()) {
    const auto extent = of_lease->second.find(block.extent);
    const std::uint64_t offset = block.index * block_size_bytes_;
    if (extent != of_lease->second.end() &&
        offset + block_size_bytes_ <= extent->second.size_bytes()) {
      return extent->second.writable_base() + static_cast<std::ptrdiff_t>(offset);
    }
  }
  return fail(Errc::LeaseFenced,
              fmt::format("block {} of extent {} is not memory of lease {}; acquire a new lease",
                          block.index, block.extent.value, to_string(lease)));
}

}  // namespace leasehold
