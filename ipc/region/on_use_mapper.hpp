/// Maps host memory without making pages, so that memory that stays idle costs nothing. The kernel
/// makes a page when a unit first uses it.
#pragma once

#include "ipc/region/region_mapper.hpp"

namespace leasehold {

/// Returns the one mapper, which has no state. Its mappings are present only if the memory has all
/// its pages already, because it was cleared in advance or adopted. Errors: as RegionMapper.
const RegionMapper& on_use_mapper();

}  // namespace leasehold
