/// The life of a sequence's KV blocks.
///
///   Allocated ──append──► Active ──swap out──► Swapped ──swap in──► Active
///       │                   │                     │
///       └─────rollback──────┴────finish, abort────┴───────────────► Freed
///
/// Allocated and Active: the blocks lie in the lease's KV pool. Swapped: they lie in its swap pool,
/// and the sequence holds no KV block. BlockTable makes every change.
#pragma once

#include <cstdint>
#include <string_view>

namespace leasehold {

enum class KvState : std::uint8_t {
  Allocated,
  Active,
  Swapped,
  Freed,
};
inline constexpr int kKvStateCount = 4;

constexpr std::string_view name(KvState state) {
  constexpr std::string_view kNames[kKvStateCount] = {"Allocated", "Active", "Swapped", "Freed"};
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
      return to == Active || to == Freed;
    case Freed:
      return false;
  }
  return false;
}

}  // namespace leasehold
