/// LaunchStatus, the result of a launch, and SettleScope, the launches that a waiter waits for.
/// C++20-clean.
#pragma once

#include "ipc/segment/gate_set.hpp"

namespace leasehold {

/// `live` holds the sequences that every unit of the launch found live. An empty mask ends the
/// step: the engine's lease or every tenant's lease was refused.
struct LaunchStatus {
  SequenceMask live = 0;
  bool none_live() const { return live == 0; }
  /// The status of both launches together.
  LaunchStatus& operator&=(LaunchStatus other) {
    live &= other.live;
    return *this;
  }
};

/// The launches that can touch the memory of a lease. Every launch may read weights, so for the
/// engine's lease these are all launches. For a tenant's lease they are the launches whose units
/// reach tenant memory.
enum class SettleScope : std::uint8_t { Everything, TenantMemory };

}  // namespace leasehold
