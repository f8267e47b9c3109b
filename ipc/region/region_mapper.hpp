/// Turns memory that came as a descriptor into leased memory: one contract for all kinds of it.
///
/// The mapping has exactly the size asked for, is ready to be touched without a wait, and outlives
/// the descriptor. Two mappings of one memory show the same bytes. Read-only ones give out no
/// writable handle. When nothing can be mapped, nothing stays mapped.
///
/// Errors: UntrustedSegment when the descriptor is no memory of the kind, or not of that size;
/// OutOfMemory; SystemError; DeviceFault and what else a device may say.
/// Threads: any; blocking, so not an I/O thread. Contract: tests/contract/region.
#pragma once

#include <cstddef>

#include "common/unique_fd.hpp"
#include "ipc/region/mapping.hpp"

namespace leasehold {

class RegionMapper {
 public:
  virtual ~RegionMapper() = default;
  virtual Result<LeasedMapping> map(UniqueFd fd, std::size_t size_bytes,
                                    MapAccess access) const = 0;
};

/// Memory of the machine: a memfd that cannot change its size, mapped and prefaulted.
class HostMapper final : public RegionMapper {
 public:
  Result<LeasedMapping> map(UniqueFd fd, std::size_t size_bytes, MapAccess access) const override;
};

/// For whoever was given no other: there is nothing in it.
const RegionMapper& host_mapper();

}  // namespace leasehold
