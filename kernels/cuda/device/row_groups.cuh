/// How a kernel reads a row of a group of sixteen rows (kernels/quant/group_format.hpp). Sixteen
/// lanes that read the same elements of the sixteen rows read 64 neighbouring bytes.
///
/// Blocks begin at multiples of 16 bytes.
#pragma once

#include "kernels/cuda/device/packed_words.cuh"
#include "kernels/quant/element.hpp"
#include "kernels/quant/group_format.hpp"

namespace leasehold::device {

inline constexpr std::uint32_t kQuad = 4;  ///< Elements in a word.

/// The numbers of group_format that device code uses: it cannot call constexpr functions.
template <TensorType kType>
struct GroupShape {
  static constexpr GroupFormat kFormat = group_format(kType);
  static constexpr std::uint32_t kElements = kFormat.elements;
  static constexpr std::uint32_t kBytes = kFormat.size_bytes();
  static constexpr std::uint32_t kNumbersAt = kFormat.sub_scales_at();
  static constexpr std::uint32_t kLowAt = kFormat.low_at();
  static constexpr std::uint32_t kHighAt = kFormat.high_at();
  static constexpr std::int64_t kLargestSum = kFormat.largest_sum();
  static constexpr bool kHasMin = kFormat.has_min;
  static constexpr bool kHasSubBlocks = kFormat.has_sub_blocks();
  static constexpr std::uint32_t kSubBlock = kHasSubBlocks ? kFormat.sub_block : kElements;
  static constexpr std::uint32_t kSubBlocks = kElements / kSubBlock;
  static constexpr std::uint32_t kQuadsPerPlane = 8 / kFormat.low_bits;
  static constexpr CodeTable kTable = kFormat.table;
  static constexpr std::uint32_t kNumbers = kFormat.n_numbers;
  static constexpr std::uint32_t kScaleBytes = kFormat.scale_bytes;
  /// Codes of 8 bits become signed when their highest bit is flipped. Shorter ones are small enough
  /// for a signed byte, and signed_quad subtracts their offset. Tables have signed values.
  static constexpr bool kIsFlipped = kFormat.low_bits == 8;
  static constexpr std::int32_t kOffset =
      kIsFlipped || kTable != CodeTable::None ? 0 : kFormat.offset;
  static constexpr std::uint32_t kOffsets = static_cast<std::uint32_t>(kOffset) * 0x01010101u;
  static_assert(!kIsFlipped || kFormat.offset == 128);
};

/// The values of a type's codes, as signed bytes.
template <CodeTable kTable>
__device__ __forceinline__ ByteTable signed_values() {
  if constexpr (kTable == CodeTable::Iq4)
    return {{0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u}};
  else
    return {{0x03020100u, 0x0C080604u, 0xFDFEFF00u, 0xF4F8FAFCu}};
}

/// One row of a block of a group.
template <TensorType kType>
struct GroupRow {
  using Shape = GroupShape<kType>;
  static constexpr GroupFormat kFormat = Shape::kFormat;

  const std::byte* block;
  std::uint32_t row;  ///< 0 … 15

  __device__ __forceinline__ float d() const {
    if constexpr (Shape::kScaleBytes == 1) return half_power_of_two(load_byte(block + row));
    return load_half(block + row * 2);
  }
  __device__ __forceinline__ float m() const { return load_half(block + (kGroupRows + row) * 2); }

  /// The row's word of a plane.
  __device__ __forceinline__ std::uint32_t plane_word(std::uint32_t planes_at,
                                                      std::uint32_t plane) const {
    return load_aligned<std::uint32_t>(block + planes_at + plane * kPlaneBytes + row * kQuad);
  }
  /// Quad n from its word of planes of kBits per element.
  template <std::uint32_t kBits>
  __device__ __forceinline__ static std::uint32_t quad_of(std::uint32_t word, std::uint32_t n) {
    constexpr std::uint32_t kMask = ((1u << kBits) - 1) * 0x01010101u;
    return word >> n % (8 / kBits) * kBits & kMask;
  }
  template <std::uint32_t kBits>
  __device__ __forceinline__ std::uint32_t plane_quad(std::uint32_t planes_at,
                                                      std::uint32_t n) const {
    return quad_of<kBits>(plane_word(planes_at, n / (8 / kBits)), n);
  }
  /// The word with the low bits of quad n.
  __device__ __forceinline__ std::uint32_t low_word(std::uint32_t n) const {
    return plane_word(Shape::kLowAt, n / Shape::kQuadsPerPlane);
  }

  /// Elements 4n … 4n + 3 plus kOffset, as signed bytes, with the word of their low bits.
  __device__ __forceinline__ std::int32_t quad(std::uint32_t low, std::uint32_t n) const {
    std::uint32_t codes = quad_of<kFormat.low_bits>(low, n);
    if constexpr (kFormat.high_bits != 0)
      codes |= plane_quad<kFormat.high_bits>(Shape::kHighAt, n) << kFormat.low_bits;
    if constexpr (Shape::kIsFlipped) codes ^= 0x80808080u;
    if constexpr (Shape::kTable != CodeTable::None)
      codes = table_bytes(signed_values<Shape::kTable>(), codes);
    return static_cast<std::int32_t>(codes);
  }

  /// Elements 4n … 4n + 3 as signed bytes.
  __device__ __forceinline__ std::int32_t signed_quad(std::uint32_t low, std::uint32_t n) const {
    auto codes = static_cast<std::uint32_t>(quad(low, n));
    // With their highest bits set, no byte borrows from the next one.
    if constexpr (Shape::kOffset != 0)
      codes = ((codes | 0x80808080u) - Shape::kOffsets) ^ 0x80808080u;
    return static_cast<std::int32_t>(codes);
  }

  /// The stored scales (or scales and minima) of sub-blocks 4n … 4n + 3 of a block of 256, as
  /// bytes.
  __device__ __forceinline__ std::uint32_t numbers(std::uint32_t n) const {
    if constexpr (kFormat.sub_scale_bits == 8) {
      return plane_quad<8>(Shape::kNumbersAt, n);
    } else if constexpr (Shape::kNumbers == 8) {
      // Two bits of each number in a byte: bit 2i moves to bit 8i.
      const std::uint32_t four = load_byte(block + Shape::kNumbersAt + kPlaneBytes + row * 2 + n);
      const std::uint32_t two = four | four << 12;
      const std::uint32_t upper = (two | two << 6) & 0x03030303u;
      return plane_quad<4>(Shape::kNumbersAt, n) | upper << 4;
    } else {
      constexpr std::uint32_t kHighNumbersAt = Shape::kNumbersAt + 2 * kPlaneBytes;
      return plane_quad<4>(Shape::kNumbersAt, n) | plane_quad<2>(kHighNumbersAt, n) << 4;
    }
  }

  /// The integer scales of sub-blocks 4n … 4n + 3, one per byte; scale_of extracts one of them.
  __device__ __forceinline__ std::uint32_t scales(std::uint32_t n) const {
    if constexpr (!Shape::kHasSubBlocks) return 1;
    if constexpr (kType == TensorType::Q2_K) return numbers(n) & 0x0F0F0F0Fu;
    return numbers(n);
  }
  __device__ __forceinline__ static std::int32_t scale_of(std::uint32_t scales, std::uint32_t i) {
    const std::uint32_t byte = __byte_perm(scales, 0, 0x4440 | i);
    if constexpr (kType == TensorType::Q3_K || kType == TensorType::IQ4_XS)
      return static_cast<std::int32_t>(byte) - 32;
    if constexpr (kType == TensorType::Q6_K) return static_cast<std::int8_t>(byte);
    return static_cast<std::int32_t>(byte);
  }
  /// The minima of sub-blocks 4n … 4n + 3, as bytes: at most 63.
  __device__ __forceinline__ std::uint32_t minima(std::uint32_t n) const {
    if constexpr (kType == TensorType::Q2_K) return numbers(n) >> 4 & 0x0F0F0F0Fu;
    return numbers(n + 2);
  }

  /// The minimum of each of strips 4n … 4n + 3 (kInt8Strip elements): that of its sub-block.
  __device__ __forceinline__ std::uint32_t minima_of_strips(std::uint32_t n) const {
    if constexpr (Shape::kSubBlock == 16) return minima(n);
    return __byte_perm(minima(n / 2), 0, n % 2 == 0 ? 0x1100 : 0x3322);
  }

  /// The scale of sub-block s. A block of 32 is its only sub-block, with a scale of 1 and a minimum
  /// of -1, because m is added.
  __device__ __forceinline__ std::int32_t scale(std::uint32_t s) const {
    if constexpr (!Shape::kHasSubBlocks) return 1;
    return scale_of(scales(s / kQuad), s % kQuad);
  }
  __device__ __forceinline__ std::int32_t min(std::uint32_t s) const {
    if constexpr (!Shape::kHasSubBlocks) return -1;
    return static_cast<std::int32_t>(minima(s / kQuad) >> 8 * (s % kQuad) & 255);
  }

  /// Element e as a float, with the bits of dequantize_group_row.
  __device__ __forceinline__ float element(std::uint32_t e) const {
    const std::uint32_t n = e / kQuad;
    const auto byte = static_cast<std::int8_t>(quad(low_word(n), n) >> 8 * (e % kQuad));
    const std::uint32_t s = e / Shape::kSubBlock;
    const float x =
        leasehold::element::times(leasehold::element::times(d(), scale(s)), byte - Shape::kOffset);
    if constexpr (Shape::kHasMin) return x - leasehold::element::times(m(), min(s));
    return x;
  }
};

/// Element e of a row of a group's block.
__device__ __forceinline__ float group_element(TensorType type, const std::byte* block,
                                               std::uint32_t row, std::uint32_t e) {
  switch (type) {
    case TensorType::Q4_0:
      return GroupRow<TensorType::Q4_0>{block, row}.element(e);
    case TensorType::Q4_1:
      return GroupRow<TensorType::Q4_1>{block, row}.element(e);
    case TensorType::Q5_0:
      return GroupRow<TensorType::Q5_0>{block, row}.element(e);
    case TensorType::Q5_1:
      return GroupRow<TensorType::Q5_1>{block, row}.element(e);
    case TensorType::Q8_0:
      return GroupRow<TensorType::Q8_0>{block, row}.element(e);
    case TensorType::Q2_K:
      return GroupRow<TensorType::Q2_K>{block, row}.element(e);
    case TensorType::Q3_K:
      return GroupRow<TensorType::Q3_K>{block, row}.element(e);
    case TensorType::Q4_K:
      return GroupRow<TensorType::Q4_K>{block, row}.element(e);
    case TensorType::Q5_K:
      return GroupRow<TensorType::Q5_K>{block, row}.element(e);
    case TensorType::IQ4_NL:
      return GroupRow<TensorType::IQ4_NL>{block, row}.element(e);
    case TensorType::IQ4_XS:
      return GroupRow<TensorType::IQ4_XS>{block, row}.element(e);
    case TensorType::MXFP4:
      return GroupRow<TensorType::MXFP4>{block, row}.element(e);
    default:
      return GroupRow<TensorType::Q6_K>{block, row}.element(e);
  }
}

}  // namespace leasehold::device
