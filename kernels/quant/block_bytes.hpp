/// Reads blocks byte by byte, for the scalar and SIMD dequantisers. C++20-clean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/numerics/f16.hpp"
#include "kernels/numerics/host_device.hpp"

namespace leasehold {

inline constexpr std::size_t kHalfBytes = sizeof(Half);

LEASEHOLD_HD inline float read_half(const std::byte* at) {
  Half half;
  std::memcpy(&half, at, sizeof half);
  return f32_from_f16(half);
}

/// bfloat16: the upper 16 bits of a float.
LEASEHOLD_HD inline float read_bfloat(const std::byte* at) {
  std::uint16_t upper;
  std::memcpy(&upper, at, sizeof upper);
  return __builtin_bit_cast(float, std::uint32_t{upper} << 16);
}

LEASEHOLD_HD inline int read_byte(const std::byte* at) {
  return static_cast<int>(*at);
}

LEASEHOLD_HD inline int read_int8(const std::byte* at) {
  return static_cast<std::int8_t>(*at);
}

}  // namespace leasehold
