/// The parameters of kernels that record the order of the card's work. C++20-clean.
#pragma once

#include <cstdint>

namespace leasehold::fake_cuda {

/// log[0] is the number of entries; `value` becomes the next one.
struct Entry {
  std::uint32_t* log;
  std::uint32_t value;
};

struct Setting {
  std::uint64_t handle;
  std::uint32_t value;
};

/// to[0] becomes what `*from` holds before the wait for the previous kernel, to[1] after it.
struct TwoReads {
  const std::uint32_t* from;
  std::uint32_t* to;
};

}  // namespace leasehold::fake_cuda
