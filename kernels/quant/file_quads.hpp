/// Reads a block of a file in the form that row groups store (group_format.hpp): four consecutive
/// codes at once, one per byte, and the numbers of its sub-blocks.
///
/// Four elements whose first index is a multiple of four lie in four consecutive bytes, in the same
/// bits of each (kernels/quant/dequantize.hpp, super_blocks.hpp).
#pragma once

#include "kernels/quant/super_blocks.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold::file {

inline std::uint32_t load_quad(const std::byte* at) {
  std::uint32_t quad;
  std::memcpy(&quad, at, sizeof quad);
  return quad;
}

/// Loads four bytes as a word, shifts it to the right, and keeps the lowest `kBits` of each byte.
template <std::uint32_t kBits>
std::uint32_t bits_of(const std::byte* at, std::uint32_t shift) {
  return load_quad(at) >> shift & ((1u << kBits) - 1) * 0x01010101u;
}

/// Blocks of 32 hold two elements per byte, half a block apart.
inline std::uint32_t low4_of_block32(const std::byte* quants, std::uint32_t e) {
  return bits_of<4>(quants + e % 16, e < 16 ? 0 : 4);
}
/// Moves bits e … e + 3 of the word at `high` to bit 4 of the four bytes.
inline std::uint32_t fifth_of_small(const std::byte* high, std::uint32_t e) {
  const std::uint32_t four = load_quad(high) >> e & 15;
  return (four * 0x00204081u & 0x01010101u) << 4;
}

inline std::uint32_t bits2_of_block256(const std::byte* quants, std::uint32_t e) {
  return bits_of<2>(quants + e / 128 * 32 + e % 32, 2 * (e / 32 % 4));
}
inline std::uint32_t bits4_of_block256(const std::byte* quants, std::uint32_t e) {
  return bits_of<4>(quants + e / 64 * 32 + e % 32, 4 * (e / 32 % 2));
}
inline std::uint32_t high_bit_of_block256(const std::byte* high, std::uint32_t e) {
  return bits_of<1>(high + e % 32, e / 32);
}

/// The codes of elements e … e + 3 as the file has them; e is a multiple of four.
template <TensorType kType>
std::uint32_t codes(const std::byte* block, std::uint32_t e) {
  switch (kType) {
    case TensorType::Q8_0:  // int8 in the file; a group stores q + 128
      return load_quad(block + kHalfBytes + e) ^ 0x80808080u;
    case TensorType::Q4_0:
      return low4_of_block32(block + kHalfBytes, e);
    case TensorType::Q4_1:
      return low4_of_block32(block + 2 * kHalfBytes, e);
    case TensorType::Q5_0:
      return low4_of_block32(block + kHalfBytes + 4, e) | fifth_of_small(block + kHalfBytes, e);
    case TensorType::Q5_1:
      return low4_of_block32(block + 2 * kHalfBytes + 4, e) |
             fifth_of_small(block + 2 * kHalfBytes, e);
    case TensorType::Q2_K:
      return bits2_of_block256(block + Q2KFields::kQuants, e);
    case TensorType::Q3_K:
      return bits2_of_block256(block + Q3KFields::kQuants, e) |
             high_bit_of_block256(block + Q3KFields::kHigh, e) << 2;
    case TensorType::Q4_K:
      return bits4_of_block256(block + Q4KFields::kQuants, e);
    case TensorType::Q5_K:
      return bits4_of_block256(block + Q5KFields::kQuants, e) |
             high_bit_of_block256(block + Q5KFields::kHigh, e) << 4;
    case TensorType::Q6_K:
      return bits_of<4>(block + Q6KFields::kQuants + e / 128 * 64 + e % 64, e % 128 < 64 ? 0 : 4) |
             bits2_of_block256(block + Q6KFields::kHigh, e) << 4;
    case TensorType::IQ4_NL:
      return low4_of_block32(block + kHalfBytes, e);
    case TensorType::IQ4_XS:
      return low4_of_block32(block + Iq4XsFields::kQuants + e / 32 * 16, e % 32);
    case TensorType::MXFP4:
      return low4_of_block32(block + 1, e);
    default:
      return 0;
  }
}

/// Entry n of the numbers of a block of 256.
template <TensorType kType>
std::uint32_t number(const std::byte* block, std::uint32_t n) {
  if constexpr (kType == TensorType::Q2_K)
    return static_cast<std::uint32_t>(read_byte(block + Q2KFields::kScales + n));
  if constexpr (kType == TensorType::Q3_K)
    return static_cast<std::uint32_t>(q3_scale(block + Q3KFields::kScales, n) + 32);
  if constexpr (kType == TensorType::Q6_K)
    return static_cast<std::uint32_t>(read_byte(block + Q6KFields::kScales + n));
  if constexpr (kType == TensorType::IQ4_XS)
    return static_cast<std::uint32_t>(iq4_xs_scale(block, n) + 32);
  static_assert(Q4KFields::kScales == Q5KFields::kScales);
  const ScaleAndMin both = q4_scale_and_min(block + Q4KFields::kScales, n % 8);
  return static_cast<std::uint32_t>(n < 8 ? both.scale : both.min);
}

}  // namespace leasehold::file
