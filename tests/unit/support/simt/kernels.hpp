/// The parameters of the runner's test kernels. C++20-clean.
#pragma once

#include <cstdint>

namespace leasehold::simt {

struct Words {
  const std::uint32_t* in;
  std::uint32_t* out;
  std::uint32_t n;
};

/// d [rows, columns] = a [rows, depth] · b [depth, columns], all row-major; a and b are halves.
struct Product {
  const std::uint16_t* a;
  const std::uint16_t* b;
  float* d;
  std::uint32_t depth;
};

/// a: [16, depth], b: [8, depth], d: [16, 8]; depth is 16 or 32.
struct Int8Product {
  const std::int8_t* a;
  const std::int8_t* b;
  std::int32_t* d;
  std::uint32_t depth;
};

}  // namespace leasehold::simt
