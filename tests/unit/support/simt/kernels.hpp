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

/// a: [rows, depth], b: [columns, depth], d: [rows, columns]. A warp's mma: 16 rows, 8 columns,
/// depth 16 or 32; wgmma: 64 rows.
struct Int8Product {
  const std::int8_t* a;
  const std::int8_t* b;
  std::int32_t* d;
  std::uint32_t depth;
};

}  // namespace leasehold::simt
