/// The parameters that the load8 test and its kernels share.
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
