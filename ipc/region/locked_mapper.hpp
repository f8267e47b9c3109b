/// Host memory that stays in memory: its pages are never swapped out.
///
/// Only read-only mappings are locked. A writable one is there to fill a region, which is mapped
/// again to be read. Source: mlock2(2), RLIMIT_MEMLOCK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ipc/region/region_mapper.hpp"

namespace leasehold {

/// One object without state. Errors: also BadRequest when this process may not lock so much, with
/// what to set.
const RegionMapper& locked_mapper();

/// Locks the pages that are present, and others once they are made present. It makes none, so
/// memory that the broker has cleared meanwhile stays without pages. Errors: those of lock_error.
Result<void> lock_present_pages(const Mapping& mapping);

/// Checks that this process may lock mappings of these sizes besides what it has locked. It locks
/// nothing and takes no memory. Errors: as locked_mapper.
Result<void> check_lockable(std::span<const std::uint64_t> sizes_bytes);

/// What limits the locked memory of this process.
struct LockLimits {
  std::uint64_t limit_bytes = 0;   ///< RLIMIT_MEMLOCK
  std::uint64_t locked_bytes = 0;  ///< Already.
};
/// Why the kernel did not lock `size_bytes` more: BadRequest, with what to set, for EPERM and
/// beyond the limit; otherwise OutOfMemory. Pure.
Error lock_error(int error, std::uint64_t size_bytes, const LockLimits& limits);

}  // namespace leasehold
