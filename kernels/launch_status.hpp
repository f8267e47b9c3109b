/// The result of a launch, and the launches whose end a waiter waits for. C++20-clean.
#pragma once

#include "ipc/segment/gate_set.hpp"

namespace leasehold {

/// `live` are the sequences that every unit of the launch found live. An empty mask ends the step:
/// the engine's lease or every tenant's lease was refused.
struct LaunchStatus {
  SequenceMask live = 0;
  bool none_live() const { return live == 0; }
};

/// The launches that can touch the memory of a lease: all of them for weights, which every launch
/// may read; for a tenant's lease only those whose unit reaches tenant memory.
enum class SettleScope : std::uint8_t { Everything, TenantMemory };

}  // namespace leasehold
