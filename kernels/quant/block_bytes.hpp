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

LEASEHOLD_HD inline float read_bfloat(const std::byte* at) {
  Bfloat value;
  std::memcpy(&value, at, sizeof value);
  return f32_from_bf16(value);
}

LEASEHOLD_HD inline int read_byte(const std::byte* at) {
  return static_cast<int>(*at);
}

LEASEHOLD_HD inline int read_int8(const std::byte* at) {
  return static_cast<std::int8_t>(*at);
}

}  // namespace leasehold
