/// Maps host memory without making pages: the kernel makes a page when a unit first uses it, so
/// memory that stays idle costs nothing.
///
/// A process that makes pages outside a unit could do so after the fence, which the broker would
/// take for a write; inside units the fence proof covers them.
#pragma once

#include "ipc/region/region_mapper.hpp"

namespace leasehold {

/// Returns the one mapper, which has no state. Its mappings are present only if the memory has all
/// its pages already, because it was cleared in advance or adopted. Errors: as RegionMapper.
const RegionMapper& on_use_mapper();

}  // namespace leasehold
