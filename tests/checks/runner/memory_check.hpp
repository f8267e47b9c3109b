/// Reads leased memory through descriptors that were opened before the revocation.
#pragma once

#include <vector>

#include "tests/checks/local_system/broker_view.hpp"

namespace leasehold::runner {

/// One reading of a memory object.
struct MemoryReading {
  std::uint64_t allocated_bytes = 0;
  std::uint64_t nonzero_bytes = 0;
};

/// Reads the whole object with pread, which allocates no page; reading a mapping of punched memory
/// would allocate pages. Errors: SystemError.
Result<MemoryReading> read_memory(const UniqueFd& object);

struct OpenedExtent {
  ExtentId extent;
  LeaseId lease;
  UniqueFd object;
  MemoryReading before;  ///< Taken while the lease was live.
};

/// Opens and reads every extent that the lease holds now. Errors: those of BrokerView, SystemError.
Result<std::vector<OpenedExtent>> open_extents(BrokerView& broker, LeaseId lease);

/// Sum of all readings.
MemoryReading sum(const std::vector<MemoryReading>& readings);

}  // namespace leasehold::runner
