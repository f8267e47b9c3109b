/// Looking at leased memory from outside, by descriptors kept from before the lease was taken back.
#pragma once

#include <vector>

#include "tools/client/broker_view.hpp"

namespace leasehold::demo {

/// What one reading of a memory object found.
struct MemoryReading {
  std::uint64_t allocated_bytes = 0;
  std::uint64_t nonzero_bytes = 0;
};

/// Reads the whole object with pread: unlike a mapping that never brings a page back.
/// Errors: SystemError.
Result<MemoryReading> read_memory(const UniqueFd& object);

struct OpenedExtent {
  ExtentId extent;
  LeaseId lease;
  UniqueFd object;
  MemoryReading before;  ///< While the lease was live.
};

/// Descriptors of all memory the lease holds now, each read once.
Result<std::vector<OpenedExtent>> open_extents(client::BrokerView& broker, LeaseId lease);

/// What all readings together found.
MemoryReading sum(const std::vector<MemoryReading>& readings);

}  // namespace leasehold::demo
