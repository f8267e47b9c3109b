/// Chooses the adapter that leaves a worker when memory or a quota is short. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/clock.hpp"
#include "common/ids.hpp"

namespace leasehold {

/// Which adapters make room for another one.
enum class RoomIn : std::uint8_t {
  Quota,  ///< Those of the same owner, because each owner has its own quota.
  Pool    ///< All; those of the same owner first.
};

/// A loaded adapter.
struct EvictionCandidate {
  std::optional<TenantId> owner;  ///< Nothing: shared by all tenants.
  bool is_pinned = false;
  bool is_idle = false;  ///< No request holds it.
  TimePoint last_used;
};

/// Returns the index of the least recently used candidate that is idle and not pinned, and whose
/// eviction makes room for an adapter of `owner`. Returns nothing if there is none.
std::optional<std::size_t> adapter_victim(std::span<const EvictionCandidate> candidates,
                                          const std::optional<TenantId>& owner, RoomIn room);

}  // namespace leasehold
