/// Checks that every KV block of a scheduler is free, used by running sequences, or cached, and
/// that every swap block is free or used by one swapped sequence.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "worker/schedule/scheduler.hpp"

namespace leasehold::testing {

inline void check_swap_conservation(const Tenancy& tenancy) {
  const auto require = [&tenancy](bool ok, const char* what) {
    if (!ok)
      throw std::logic_error("swap blocks of lease " + to_string(tenancy.lease) + ": " + what);
  };
  std::set<BlockId> held;
  for (const auto& [id, sequence] : tenancy.swapped) {
    require(is_moved_out(sequence->blocks.state()), "a sequence is neither Swapped nor Spilled");
    require(sequence->blocks.blocks().empty(), "a swapped sequence has KV blocks");
    for (const BlockId block : sequence->blocks.swapped())
      require(tenancy.swap.holds(block) && held.insert(block).second, "one has two users");
    const bool waits = std::ranges::any_of(tenancy.waiting, [&id](const PromptRequest& request) {
      return request.engine_request_id == id;
    });
    require(waits, "the request of a swapped sequence does not wait");
  }
  require(tenancy.swap.held_blocks() == held.size(), "one has no user");
  require(tenancy.swap.free_blocks() + tenancy.swap.held_blocks() == tenancy.swap.total_blocks(),
          "one is lost");
}

/// Throws std::logic_error when a lease with work is not busy, a block is lost, belongs to two
/// sequences without being cached, or when an entry is not referenced by exactly the sequences that
/// use it.
inline void check_block_conservation(const Scheduler& scheduler) {
  std::map<LeaseId, std::set<BlockId>> held;
  std::map<LeaseId, std::map<PrefixId, std::uint32_t>> references;
  std::map<LeaseId, std::map<PrefixId, std::uint32_t>> window_references;
  const auto reference_text = [&](LeaseId lease, std::span<const PrefixId> chain) {
    for (const PrefixId id : chain) ++references[lease][id];
    const auto n_blocks = static_cast<std::uint32_t>(chain.size());
    for (const PrefixId id : chain.subspan(scheduler.fit().limits().first_window(n_blocks)))
      ++window_references[lease][id];
  };
  const auto require = [](bool ok, LeaseId lease, const char* what) {
    if (!ok) throw std::logic_error("KV blocks of lease " + to_string(lease) + ": " + what);
  };
  for (const auto& [lease, tenancy] : scheduler.tenancies()) {
    for (const PrefixId id : tenancy.prefixes.entries())
      require(held[lease].insert(tenancy.prefixes.block(id)).second, lease, "one is cached twice");
    for (const EntryBlocks* owned : {&tenancy.prefixes.states(), &tenancy.prefixes.windows()})
      for (const PrefixId id : tenancy.prefixes.entries())
        for (const BlockId block : owned->of(id))
          require(held[lease].insert(block).second, lease, "an entry's block has another user");
  }
  for (const auto& [lease, tenancy] : scheduler.tenancies())
    reference_text(lease, tenancy.published);
  for (const auto& [lease, tenancy] : scheduler.tenancies())
    require(tenancy.is_idle() || scheduler.tenancies().busy().contains(lease), lease,
            "the lease has work, and ticks do not examine it");
  for (const SwapTransfer& transfer : scheduler.transfers()) {
    if (transfer.state_of.value == 0) continue;
    const LeaseId lease = transfer.sequence->request.lease;
    for (const BlockCopy& copy : transfer.copies)
      require(held[lease].insert(copy.to).second, lease, "a snapshot has another user");
  }
  for (const auto& sequence : scheduler.running().all()) {
    if (sequence->shared_lease) reference_text(*sequence->shared_lease, sequence->borrowed);
    const LeaseId lease = sequence->request.lease;
    require(sequence->blocks.swapped().empty(), lease, "a running sequence has swap blocks");
    const PrefixIndex& prefixes = scheduler.tenancies().at(lease).prefixes;
    const BlockTable& table = sequence->blocks;
    const auto cached = table.cached();
    require(table.published_blocks() == sequence->borrowed.size(), lease, "one is borrowed twice");
    for (std::size_t i = table.published_blocks(); i < table.blocks().size(); ++i) {
      const BlockId block = table.blocks()[i];
      if (i >= cached.size()) require(held[lease].insert(block).second, lease, "one has two users");
      if (i < cached.size())
        require(prefixes.block(cached[i]) == block, lease, "one is not cached");
    }
    const WindowBlocks& windows = table.windows();
    for (std::uint32_t i = windows.first(); i < windows.end(); ++i) {
      if (i < table.published_blocks()) continue;
      const bool is_cached =
          i < cached.size() && std::ranges::equal(prefixes.windows().of(cached[i]), windows.of(i));
      if (is_cached) ++window_references[lease][cached[i]];
      for (const BlockId block : windows.of(i))
        require(is_cached || held[lease].insert(block).second, lease,
                "a block of a window has two users");
    }
    for (const BlockId block : table.record_blocks())
      require(held[lease].insert(block).second, lease, "a record has another user");
    for (const BlockId block : table.recurrent().blocks())
      require(held[lease].insert(block).second, lease, "a state has another user");
    for (const PrefixId id : cached) ++references[lease][id];
  }
  for (const auto& [lease, tenancy] : scheduler.tenancies()) {
    check_swap_conservation(tenancy);
    const BlockPool& pool = tenancy.pool;
    require(pool.held_blocks() == held[lease].size(), lease, "one has no user");
    require(pool.free_blocks() + pool.held_blocks() == pool.total_blocks(), lease, "one is lost");
    for (const BlockId block : held[lease])
      require(pool.holds(block), lease, "one is used and free");
    for (const PrefixId id : tenancy.prefixes.entries())
      require(tenancy.prefixes.references(id) == references[lease][id], lease,
              "an entry is referenced by others than its users");
    for (const PrefixId id : tenancy.prefixes.entries())
      require(!tenancy.prefixes.windows().has(id) ||
                  tenancy.prefixes.windows().references(id) == window_references[lease][id],
              lease, "blocks of a window are referenced by others than their users");
  }
}

}  // namespace leasehold::testing
