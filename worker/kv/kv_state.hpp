/// The life of a sequence's KV blocks.
///
///   Allocated ──append──► Active ──swap out──► Swapped ──swap in──► Active
///       │                   │                     ├──written to the spill file──► Spilled
///       └─────rollback──────┴────finish, abort────┴───► Freed
///
///   Spilled ──admit──► Returning ──all blocks read, or none usable──► Active
///      └──────abort────────┴───► Freed
///
/// Allocated and Active: the blocks lie in the lease's KV pool. Swapped: the blocks lie in its swap
/// pool, and the sequence holds no KV block. Spilled: the blocks lie only in the spill file.
/// Returning: the sequence holds its KV blocks again, and they are filled piece by piece; no row is
/// computed meanwhile. BlockTable makes every change of state.
#pragma once

#include <cstdint>
#include <string_view>

namespace leasehold {

enum class KvState : std::uint8_t {
  Allocated,
  Active,
  Swapped,
  Spilled,
  Returning,
  Freed,
};
inline constexpr int kKvStateCount = 6;

constexpr std::string_view name(KvState state) {
  constexpr std::string_view kNames[kKvStateCount] = {"Allocated", "Active",    "Swapped",
                                                      "Spilled",   "Returning", "Freed"};
  return kNames[static_cast<unsigned>(state)];
}

/// The transition table of the picture above.
constexpr bool may_become(KvState from, KvState to) {
  using enum KvState;
  switch (from) {
    case Allocated:
      return to == Active || to == Freed;
    case Active:
      return to == Swapped || to == Freed;
    case Swapped:
      return to == Active || to == Spilled || to == Freed;
    case Spilled:
      return to == Returning || to == Freed;
    case Returning:
      return to == Active || to == Freed;
    case Freed:
      return false;
  }
  return false;
}

/// True if the sequence has no blocks in the KV pool; its request then waits.
constexpr bool is_moved_out(KvState state) {
  return state == KvState::Swapped || state == KvState::Spilled;
}

}  // namespace leasehold
