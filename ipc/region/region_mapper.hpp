/// Maps memory that was received as a descriptor. All kinds of leased memory have this one
/// contract.
///
/// The mapping has exactly the requested size, is present, and outlives the descriptor. Two
/// mappings of one memory show the same bytes. A read-only mapping has no writable address. After
/// an error nothing stays mapped.
///
/// Errors: UntrustedSegment when the descriptor is memory of another kind or size; OutOfMemory;
/// SystemError; DeviceFault and other errors of devices.
/// Threads: any, but it blocks: do not call it on an I/O thread. Contract: tests/contract/region.
#pragma once

#include <cstddef>

#include "common/machine/unique_fd.hpp"
#include "ipc/region/mapping.hpp"

namespace leasehold {

class RegionMapper {
 public:
  virtual ~RegionMapper() = default;
  virtual Result<LeasedMapping> map(UniqueFd fd, std::size_t size_bytes,
                                    MapAccess access) const = 0;
};

/// Maps host memory: a memfd of fixed size, mapped and prefaulted. Returns the one mapper, which
/// has no state.
const RegionMapper& host_mapper();

/// Maps memory as `host_mapper` does, for a mapper that also registers it with a device. Errors: as
/// RegionMapper.
Result<Mapping> map_host_memory(UniqueFd fd, std::size_t size_bytes, MapAccess access);

}  // namespace leasehold
