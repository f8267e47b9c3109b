#include "tests/checks/bench/machine_limits.hpp"

namespace leasehold::bench {

ByteProducts byte_products(SimdPath) {
  return ByteProducts::None;
}

MachineLimits measure_limits(ThreadPool&, SimdPath, std::span<const std::byte>) {
  return {};
}

}  // namespace leasehold::bench
