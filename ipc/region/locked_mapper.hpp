/// Host memory that stays in memory: its pages are never swapped out.
///
/// Only read-only mappings are locked. A writable one is there to fill a region, which is mapped
/// again to be read. Source: mlock2(2), RLIMIT_MEMLOCK.
#pragma once

#include <cstddef>

#include "ipc/region/region_mapper.hpp"

namespace leasehold {

/// One object without state. Errors: also BadRequest when this process may not lock so much, with
/// what to set.
const RegionMapper& locked_mapper();

/// Checks that this process may lock `size_bytes` more; locks nothing and takes no memory. Errors:
/// as locked_mapper.
Result<void> check_lockable(std::size_t size_bytes);

}  // namespace leasehold
