#include "worker/adapter/adapter_victim.hpp"

#include <utility>

namespace leasehold {

std::optional<std::size_t> adapter_victim(std::span<const EvictionCandidate> candidates,
                                          const std::optional<TenantId>& owner, RoomIn room) {
  const auto rank = [&](const EvictionCandidate& candidate) {
    return std::pair(candidate.owner != owner, candidate.last_used);
  };
  std::optional<std::size_t> victim;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const EvictionCandidate& candidate = candidates[i];
    if (!candidate.is_idle || candidate.is_pinned) continue;
    if (room == RoomIn::Quota && candidate.owner != owner) continue;
    if (!victim || rank(candidate) < rank(candidates[*victim])) victim = i;
  }
  return victim;
}

}  // namespace leasehold
