// The part of Engine that adds and removes KV memory, and reports which requests' text it holds.
#include <fmt/format.h>

#include "worker/engine/engine.hpp"

namespace leasehold {

void Engine::add_extent(LeaseId lease, ExtentId extent, LeasedMapping mapping,
                        wire::MemoryPool pool) {
  if (memory_.has(lease, extent)) return;
  const auto blocks = static_cast<std::uint32_t>(mapping.size_bytes() / memory_.block_size_bytes());
  memory_.add(lease, extent, std::move(mapping));
  if (pool == wire::MemoryPool::Swap) {
    scheduler_.add_swap_extent(lease, extent, blocks);
  } else {
    scheduler_.add_extent(lease, extent, blocks);
  }
}

std::vector<ExtentId> Engine::reclaim_extents(LeaseId lease, std::uint32_t count,
                                              wire::MemoryPool pool) {
  const std::vector<ExtentId> extents = scheduler_.remove_free_extents(lease, count, pool);
  memory_.remove(lease, extents);
  return extents;
}

Result<void> Engine::fill(LeaseId lease, std::vector<TokenId> text) {
  TRY(check_weights());
  if (completion_for(lease)) {
    return fail(Errc::LeaseRevoked,
                fmt::format("lease {} has ended; publish the text again", to_string(lease)));
  }
  return scheduler_.fill(lease, std::move(text));
}

void Engine::report_kv_changes() {
  for (const KvChange& change : scheduler_.take_kv_changes()) {
    if (deps_.eviction_listener == nullptr) continue;
    if (change.is_held) {
      deps_.eviction_listener->kv_held(change.engine_request_id);
    } else {
      deps_.eviction_listener->kv_gone(change.engine_request_id);
    }
  }
}

}  // namespace leasehold
