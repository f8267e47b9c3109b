/// The blocks of 256 elements ("K quants"): sub-blocks of 16 or 32 with small scales of their own.
///
/// Packed layouts and values (source: the GGUF specification and ggml's types). An element belongs
/// to sub-block s, whose scale sc[s] and minimum mn[s] are integers:
///
///   Q2_K   scales[16] | q[64] | half d, dmin             x = d·sc·q2 - dmin·mn
///   Q3_K   h[32] | q[64] | scales[12] | half d           x = d·(sc - 32)·(q2 + 4·h1 - 4)
///   Q4_K   half d, dmin | scales[12] | q[128]            x = d·sc·q4 - dmin·mn
///   Q5_K   half d, dmin | scales[12] | h[32] | q[128]    x = d·sc·(q4 + 16·h1) - dmin·mn
///   Q6_K   q[128] | h[64] | int8 sc[16] | half d         x = d·sc·(q4 + 16·h2 - 32)
///   IQ4_XS half d | uint16 h | l[4] | q[128]             x = d·(sc - 32)·value(q4)
///
/// The bits of element e, counted from the lowest:
///   Q2_K, Q3_K   q2: byte 32·(e/128) + e%32, bits 2·(e/32 % 4); h1: h[e%32], bit e/32; s = e/16
///   Q4_K, Q5_K   q4: byte 32·(e/64) + e%32, low half if e/32 is even; h1: h[e%32], bit e/32;
///                s = e/32
///   Q6_K         q4: byte 64·(e/128) + e%64, low half if e%128 < 64;
///                h2: h[32·(e/128) + e%32], bits 2·(e/32 % 4); s = e/16
///   IQ4_XS       q4: byte 16·(e/32) + e%16, low half if e%32 < 16; s = e/32; sc: four bits in
///                l[s/2], low half if s is even, and bits 2s of h
///
/// Scales of Q2_K: byte s holds sc in the low half and mn in the high half. The functions below
/// read the 6-bit scales.
#pragma once

#include "kernels/quant/block_bytes.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold {

/// Byte offsets of a block's fields.
struct Q2KFields {
  static constexpr std::size_t kScales = 0, kQuants = 16, kD = 80, kDmin = 82;
};
struct Q3KFields {
  static constexpr std::size_t kHigh = 0, kQuants = 32, kScales = 96, kD = 108;
};
struct Q4KFields {
  static constexpr std::size_t kD = 0, kDmin = 2, kScales = 4, kQuants = 16;
};
struct Q5KFields {
  static constexpr std::size_t kD = 0, kDmin = 2, kScales = 4, kHigh = 16, kQuants = 48;
};
struct Q6KFields {
  static constexpr std::size_t kQuants = 0, kHigh = 128, kScales = 192, kD = 208;
};

/// Scale s of a Q3_K block minus 32: four bits are in the lower or upper half of bytes 0 … 7, two
/// in bytes 8 … 11.
LEASEHOLD_HD inline int q3_scale(const std::byte* scales, std::size_t s) {
  const int low = s < 8 ? read_byte(scales + s) & 15 : read_byte(scales + s - 8) >> 4;
  const int high = read_byte(scales + 8 + s % 4) >> (2 * (s / 4)) & 3;
  return (low | high << 4) - 32;
}

struct Iq4XsFields {
  static constexpr std::size_t kD = 0, kHigh = 2, kLow = 4, kQuants = 8;
};

/// Scale s of an IQ4_XS block minus 32.
LEASEHOLD_HD inline int iq4_xs_scale(const std::byte* block, std::size_t s) {
  const int low = read_byte(block + Iq4XsFields::kLow + s / 2) >> (4 * (s % 2)) & 15;
  const int high = read_byte(block + Iq4XsFields::kHigh + s / 4) >> (2 * (s % 4)) & 3;
  return (low | high << 4) - 32;
}

struct ScaleAndMin {
  int scale;
  int min;
};

/// Scale and minimum of sub-block s of a Q4_K or Q5_K block. The first four are in the low six bits
/// of bytes 0 … 7. The others have four bits in bytes 8 … 11 and two in the top of bytes 0 … 7.
LEASEHOLD_HD inline ScaleAndMin q4_scale_and_min(const std::byte* scales, std::size_t s) {
  if (s < 4) return {read_byte(scales + s) & 63, read_byte(scales + s + 4) & 63};
  const int both = read_byte(scales + s + 4);
  return {(both & 15) | read_byte(scales + s - 4) >> 6 << 4,
          both >> 4 | read_byte(scales + s) >> 6 << 4};
}

}  // namespace leasehold
