/// The parameters of the kernels that show in which order the card does things. C++20-clean.
#pragma once

#include <cstdint>

namespace leasehold::fake_cuda {

/// log[0] entries so far; `value` becomes the next.
struct Entry {
  std::uint32_t* log;
  std::uint32_t value;
};

struct Setting {
  std::uint64_t handle;
  std::uint32_t value;
};

}  // namespace leasehold::fake_cuda
