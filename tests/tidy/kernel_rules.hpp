/// Rules of the code that runs on a card.
#pragma once

#include "tests/tidy/rules.hpp"

namespace leasehold::tidy {

/// Blocks of a kernel exchange results through `arrive` only, and read the mirror through the gate
/// only. So kernels have no atomics, fences, volatile accesses or PTX elsewhere.
Findings protocols_between_blocks(const Sources& sources);

}  // namespace leasehold::tidy
