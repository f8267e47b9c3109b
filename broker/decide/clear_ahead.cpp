#include "broker/decide/clear_ahead.hpp"

#include <algorithm>

namespace leasehold {
namespace {

/// Number of extents that a replacement of this lease would take.
std::uint64_t extents_of_replacement(const State& state, const LeaseRecord& record) {
  const bool is_replaceable =
      record.scope == wire::LeaseScope::Tenant && record.is(LeaseState::Live);
  if (!is_replaceable) return 0;
  const Worker* worker = state.workers.find(record.worker());
  if (worker == nullptr || worker->blocks_per_extent == 0) return 0;
  const std::uint64_t per_extent = worker->blocks_per_extent;
  return (record.charged_blocks + per_extent - 1) / per_extent;
}

}  // namespace

std::uint32_t extents_to_clear(const State& state, std::uint64_t limit_bytes) {
  const std::uint64_t size_bytes = state.extents.extent_size_bytes();
  if (size_bytes == 0 || state.config.is_on_device(MemoryPool::Kv)) return 0;
  std::uint64_t largest = 0;
  state.leases.for_each_open([&](const LeaseRecord& record) {
    largest = std::max(largest, extents_of_replacement(state, record));
  });
  const std::uint64_t most =
      std::min<std::uint64_t>(state.extents.free_extents(), limit_bytes / size_bytes);
  return static_cast<std::uint32_t>(std::min(largest, most));
}

}  // namespace leasehold
