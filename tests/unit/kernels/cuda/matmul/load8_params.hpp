/// What the test of load8 and its kernels agree on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leasehold::device {

struct Load8Params {
  const std::byte* row;
  std::uint32_t* halves;  ///< [groups][4 threads][4]
  std::uint32_t n_in;
};

}  // namespace leasehold::device
