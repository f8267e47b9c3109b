/// The result of a launch. C++20-clean.
#pragma once

#include "ipc/segment/gate_set.hpp"

namespace leasehold {

/// `live` are the sequences that every unit of the launch found live. An empty mask ends the step:
/// the engine's lease or every tenant's lease was refused.
struct LaunchStatus {
  SequenceMask live = 0;
  bool none_live() const { return live == 0; }
};

}  // namespace leasehold
