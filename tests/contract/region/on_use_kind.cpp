#include "ipc/region/on_use_mapper.hpp"
#include "tests/contract/region/host_memory_kind.hpp"

namespace leasehold::testing {

std::unique_ptr<RegionKind> make_region_kind() {
  return std::make_unique<HostMemoryKind>(on_use_mapper());
}

}  // namespace leasehold::testing
