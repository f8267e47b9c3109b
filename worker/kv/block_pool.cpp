#include "worker/kv/block_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "common/expects.hpp"

namespace leasehold {

BlockPool::Extent* BlockPool::find(ExtentId id) {
  const auto found = std::ranges::find(extents_, id, &Extent::id);
  return found == extents_.end() ? nullptr : &*found;
}

void BlockPool::add_extent(ExtentId extent, std::uint32_t blocks) {
  expects(find(extent) == nullptr, "an extent is added to a pool once");
  Extent added{.id = extent, .free = std::vector<std::uint32_t>(blocks), .held = {}};
  added.held.assign(blocks, false);
  std::iota(added.free.rbegin(), added.free.rend(), 0u);  // block 0 is taken first
  extents_.push_back(std::move(added));
}

std::optional<BlockId> BlockPool::take() {
  Extent* fullest = nullptr;
  for (Extent& extent : extents_) {
    if (extent.free.empty()) continue;
    if (fullest == nullptr || extent.free.size() < fullest->free.size()) fullest = &extent;
  }
  if (fullest == nullptr) return std::nullopt;
  const std::uint32_t index = fullest->free.back();
  fullest->free.pop_back();
  fullest->held[index] = true;
  return BlockId{fullest->id, index};
}

Result<void> BlockPool::take(std::uint32_t count, std::vector<BlockId>& into) {
  if (free_blocks() < count) {
    return fail(Errc::OutOfBlocks,
                fmt::format("{} more KV blocks are needed, and {} of {} are free", count,
                            free_blocks(), total_blocks()));
  }
  for (std::uint32_t i = 0; i < count; ++i) into.push_back(*take());
  return {};
}

bool BlockPool::take(BlockId block) {
  Extent* extent = find(block.extent);
  if (extent == nullptr || block.index >= extent->held.size() || extent->held[block.index])
    return false;
  std::erase(extent->free, block.index);
  extent->held[block.index] = true;
  return true;
}

void BlockPool::release_record(std::span<const BlockId> blocks) {
  if (blocks.empty()) return;
  released_records_.push_back(blocks.front());
  for (const BlockId block : blocks) release(block);
}

void BlockPool::release(BlockId block) {
  Extent* extent = find(block.extent);
  expects(extent != nullptr && holds(block), "a released block was held");
  extent->held[block.index] = false;
  extent->free.push_back(block.index);
}

bool BlockPool::holds(BlockId block) const {
  const auto extent = std::ranges::find(extents_, block.extent, &Extent::id);
  return extent != extents_.end() && block.index < extent->held.size() && extent->held[block.index];
}

bool BlockPool::contains(BlockId block) const {
  const auto extent = std::ranges::find(extents_, block.extent, &Extent::id);
  return extent != extents_.end() && block.index < extent->held.size();
}

std::vector<ExtentId> BlockPool::remove_free_extents(std::uint32_t count) {
  std::vector<ExtentId> removed;
  std::erase_if(extents_, [&](const Extent& extent) {
    const bool free = extent.free.size() == extent.held.size();
    if (!free || removed.size() == count) return false;
    removed.push_back(extent.id);
    return true;
  });
  return removed;
}

std::map<ExtentId, std::uint32_t> BlockPool::held_by_extent() const {
  std::map<ExtentId, std::uint32_t> held;
  for (const Extent& extent : extents_)
    held[extent.id] = static_cast<std::uint32_t>(extent.held.size() - extent.free.size());
  return held;
}

std::uint32_t BlockPool::free_blocks() const {
  std::size_t free = 0;
  for (const Extent& extent : extents_) free += extent.free.size();
  return static_cast<std::uint32_t>(free);
}

std::uint32_t BlockPool::total_blocks() const {
  std::size_t total = 0;
  for (const Extent& extent : extents_) total += extent.held.size();
  return static_cast<std::uint32_t>(total);
}

std::uint32_t BlockPool::held_blocks() const {
  return total_blocks() - free_blocks();
}

}  // namespace leasehold
