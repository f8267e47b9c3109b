/// How a launch ended. C++20-clean.
#pragma once

#include "ipc/segment/gate_set.hpp"

namespace leasehold {

/// `live` are the sequences every unit of the launch still found live. An empty mask means there is
/// nothing left to launch for: either the engine's lease was refused or every tenant's.
struct LaunchStatus {
  SequenceMask live = 0;
  bool none_live() const { return live == 0; }
};

}  // namespace leasehold
