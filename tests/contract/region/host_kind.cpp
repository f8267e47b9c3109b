#include "tests/contract/region/host_memory_kind.hpp"

namespace leasehold::testing {

std::unique_ptr<RegionKind> make_region_kind() {
  return std::make_unique<HostMemoryKind>(host_mapper());
}

}  // namespace leasehold::testing
