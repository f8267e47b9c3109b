#include "worker/schedule/memory/kv_allocator.hpp"

#include <algorithm>
#include <iterator>

namespace leasehold {
namespace {

/// Among the extents without a block of a running sequence, the one with the fewest cached blocks.
std::optional<ExtentId> cheapest_unused_extent(const Tenancy& tenancy) {
  const auto unused = tenancy.prefixes.unused_by_extent();
  std::optional<std::pair<std::uint32_t, ExtentId>> cheapest;
  for (const auto& [extent, held] : tenancy.pool.held_by_extent()) {
    const auto cached = unused.find(extent);
    if (cached == unused.end() || cached->second != held) continue;
    if (!cheapest || held < cheapest->first) cheapest = {held, extent};
  }
  if (!cheapest) return std::nullopt;
  return cheapest->second;
}

}  // namespace

std::optional<Starved> KvAllocator::reserve_rows(Sequence& sequence, std::uint32_t n_rows) {
  Tenancy& tenancy = tenancies_.at(sequence.request.lease);
  const std::uint32_t positions = sequence.blocks.committed() + n_rows;
  const std::uint32_t more = sequence.blocks.missing_blocks(positions);
  const std::uint32_t limit = more > 0 ? tenancies_.limit_of(sequence.request) : 0;
  const bool over_quota = more > 0 && tenancies_.used_by(tenancy.tenant) + more > limit;
  if (more > 0 && !over_quota && tenancy.available_blocks() >= more)
    make_room(tenancy, more, limit);
  const bool ok = !over_quota && sequence.blocks.reserve(positions, tenancy.pool).has_value();
  // Requests growth one block ahead, so that the broker has usually answered when the block is
  // needed.
  const std::uint32_t ahead = sequence.blocks.missing_blocks(positions + limits_.tokens_per_block);
  const std::uint32_t available = tenancy.available_blocks();
  if (available < ahead && !over_quota) tenancy.growth.want(ahead - available);
  if (ok) return std::nullopt;
  return Starved{.sequence = &sequence, .blocks = more, .over_quota = over_quota};
}

bool KvAllocator::reserve_proposed(Sequence& sequence, std::uint32_t n_rows) {
  Tenancy& tenancy = tenancies_.at(sequence.request.lease);
  const std::uint32_t positions = sequence.blocks.committed() + n_rows;
  const std::uint32_t more = sequence.blocks.missing_blocks(positions);
  if (more == 0) return true;
  const std::uint32_t n_groups = 1 + limits_.window.n_groups;
  const bool is_free = tenancy.pool.free_blocks() >= more + n_groups * tenancy.running &&
                       tenancies_.held_by(tenancy.tenant) + more +
                               n_groups * tenancies_.running_of(*tenancy.account) <=
                           tenancies_.limit_of(sequence.request);
  return is_free && sequence.blocks.reserve(positions, tenancy.pool).has_value();
}

// ----------------------------------------------------------------------------------------- room

void KvAllocator::make_room(Tenancy& tenancy, std::uint32_t blocks, std::uint32_t limit) {
  evict(tenancy, blocks - std::min(blocks, tenancy.pool.free_blocks()));
  evict_above(tenancy.tenant, limit - blocks);
}

void KvAllocator::evict(Tenancy& tenancy, std::uint32_t count) {
  for (const BlockId block : tenancy.prefixes.evict(count)) tenancy.pool.release(block);
  note_gone(tenancy.prefixes);
}

void KvAllocator::evict_above(const TenantId& tenant, std::uint32_t limit) {
  for (const LeaseId lease : tenancies_.leases_of(tenant)) {
    const std::uint32_t held = tenancies_.held_by(tenant);
    if (held <= limit) return;
    evict(tenancies_.at(lease), held - limit);
  }
}

void KvAllocator::limit_states(Tenancy& tenancy) {
  const std::uint32_t most = tenancy.pool.total_blocks() / 2;
  for (const BlockId block : tenancy.prefixes.states().limit(most)) tenancy.pool.release(block);
}

std::vector<ExtentId> KvAllocator::remove_free_extents(Tenancy& tenancy, std::uint32_t count) {
  std::vector<ExtentId> removed = tenancy.pool.remove_free_extents(count);
  while (removed.size() < count) {
    const std::optional<ExtentId> extent = cheapest_unused_extent(tenancy);
    if (!extent) break;
    for (const BlockId block : tenancy.prefixes.evict_extent(*extent)) tenancy.pool.release(block);
    note_gone(tenancy.prefixes);
    const auto left = static_cast<std::uint32_t>(count - removed.size());
    std::ranges::copy(tenancy.pool.remove_free_extents(left), std::back_inserter(removed));
  }
  return removed;
}

// ------------------------------------------------------------------------------------ held text

void KvAllocator::note_gone(PrefixIndex& prefixes) {
  for (RequestId& id : prefixes.take_gone_users()) changes_.push_back({std::move(id), false});
}

void KvAllocator::keep_user(PrefixIndex& prefixes, std::span<const PrefixId> cached,
                            const RequestId& id) {
  if (cached.empty()) return note_not_held(id);
  prefixes.add_user(cached.front(), id);
}

}  // namespace leasehold
