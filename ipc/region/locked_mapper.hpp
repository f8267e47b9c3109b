/// Maps host memory whose pages the kernel does not swap out.
///
/// Only read-only mappings are locked. A writable mapping only fills a region, which is then mapped
/// again for reading. Source: mlock2(2), RLIMIT_MEMLOCK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ipc/region/region_mapper.hpp"

namespace leasehold {

/// Returns the one mapper, which has no state. Errors of the mapper: those of RegionMapper, and
/// BadRequest when this process may not lock that much memory, with what to set.
const RegionMapper& locked_mapper();

/// Locks the pages that are present, and others once they become present. Makes no pages, so memory
/// that the broker has released meanwhile stays without pages. Errors: those of lock_error.
Result<void> lock_present_pages(const Mapping& mapping);

/// Checks that this process may lock mappings of these sizes in addition to what it has locked.
/// Locks nothing and uses no memory. Errors: as locked_mapper.
Result<void> check_lockable(std::span<const std::uint64_t> sizes_bytes);

/// The limit on locked memory of this process, and its use.
struct LockLimits {
  std::uint64_t limit_bytes = 0;   ///< RLIMIT_MEMLOCK
  std::uint64_t locked_bytes = 0;  ///< Locked already.
};
/// The error when the kernel does not lock `size_bytes` more: BadRequest with what to set for EPERM
/// and for a size beyond the limit; otherwise OutOfMemory. Pure.
Error lock_error(int error, std::uint64_t size_bytes, const LockLimits& limits);

}  // namespace leasehold
