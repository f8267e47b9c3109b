#include "tests/checks/bench/machine_limits.hpp"

#include <algorithm>

namespace leasehold::bench {

std::string_view name(ByteProducts products) {
  switch (products) {
    case ByteProducts::None:
      break;
    case ByteProducts::Vpmaddubsw:
      return "vpmaddubsw";
    case ByteProducts::Vpdpbusd:
      return "vpdpbusd";
    case ByteProducts::Tdpbssd:
      return "tdpbssd";
  }
  return "none";
}

MachineLimits MachineLimits::max(const MachineLimits& other) const {
  return {std::max(bytes_per_s, other.bytes_per_s), std::max(fma_per_s, other.fma_per_s),
          std::max(byte_macs_per_s, other.byte_macs_per_s)};
}

}  // namespace leasehold::bench
