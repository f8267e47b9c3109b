/// A barrier in shared memory. Plain data, the same for the host compiler and nvcc. C++20-clean.
#pragma once

#include <cstdint>

namespace leasehold::device {

/// Counts arrivals of threads and bytes of bulk copies. A phase completes when its last arrival and
/// its last expected byte have come; then the next phase begins. Source: PTX ISA, mbarrier.
struct SharedBarrier {
  std::uint64_t state;  ///< Only the functions of bulk_copy.cuh read or write it.
};

}  // namespace leasehold::device
