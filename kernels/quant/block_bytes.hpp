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

/// The scale of a block of MXFP4 whose exponent is `e`, for elements that are stored doubled: half
/// of 2^(e - 127).
LEASEHOLD_HD inline float half_power_of_two(std::uint32_t e) {
  return __builtin_bit_cast(float, e < 2 ? 0x00200000u << e : (e - 1) << 23);
}

LEASEHOLD_HD inline int read_byte(const std::byte* at) {
  return static_cast<int>(*at);
}

LEASEHOLD_HD inline int read_int8(const std::byte* at) {
  return static_cast<std::int8_t>(*at);
}

}  // namespace leasehold
