/// The bytes of sixteen interleaved rows (row_group.hpp), by type.
///
/// A block of a group has one block of each row, in as many bytes as these blocks have in the file:
///
///   half d[16] | half m[16] | numbers | low bits | high bits
///
/// d is a byte in MXFP4: the exponent. m is the minimum, or the scale of the minima, if the type
/// has one. The other parts are *planes* of 64 bytes, four per row: byte 4r + i has bits of the
/// elements of row r whose index is i modulo
/// 4. With p bits per element, plane n has elements 32n/p … 32(n+1)/p - 1 of each row, the first
/// four in the lowest bits. The bits of an element form a code: low + high · 2^(low bits), or the
/// entry of a table (code_values.hpp). The element is the code minus the type's offset.
///
/// Blocks of 256 have sixteen numbers per row, stored in planes like sixteen elements of 8 bits, or
/// of 4 low and 2 high bits:
///   Q2_K         8 bits: the scale of each sub-block + 16 · its minimum
///   Q3_K         6 bits: the scale of each sub-block + 32
///   Q4_K, Q5_K   6 bits: the scales of the eight sub-blocks, then their minima
///   Q6_K         8 bits: the scale of each sub-block, signed
///
/// IQ4_XS has eight numbers of 6 bits, the scale of each sub-block + 32: their low bits in a plane,
/// then 16 bits per row, two for each number.
///
/// C++20-clean.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/code_values.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold {

inline constexpr std::uint32_t kGroupRows = 16;
inline constexpr std::uint32_t kPlaneBytes = 64;

struct GroupFormat {
  std::uint32_t elements;  ///< Elements of a block.
  std::uint32_t low_bits;
  std::uint32_t high_bits;
  std::int32_t offset;
  bool has_min;
  std::uint32_t sub_scale_bits = 0;  ///< Bits of a number; 0: no numbers, and no sub-blocks.
  std::uint32_t sub_block = 0;       ///< Elements of a sub-block.
  std::int32_t largest_scale = 1;
  CodeTable table = CodeTable::None;
  std::uint32_t n_numbers = 16;   ///< Numbers of a row, if there are any.
  std::uint32_t scale_bytes = 2;  ///< Size of d.

  constexpr bool has_sub_blocks() const { return sub_scale_bits != 0; }
  constexpr std::uint32_t sub_scales_at() const {
    return kGroupRows * scale_bytes * (has_min ? 2 : 1);
  }
  constexpr std::uint32_t low_at() const {
    return sub_scales_at() + kGroupRows * sub_scale_bits * n_numbers / 8;
  }
  constexpr std::uint32_t high_at() const {
    return low_at() + kGroupRows * elements / 8 * low_bits;
  }
  constexpr std::uint32_t size_bytes() const {
    return high_at() + kGroupRows * elements / 8 * high_bits;
  }
  /// Bounds of a code, and of the integer sums of a block, whether the offset is subtracted before
  /// or after the sum.
  constexpr std::int64_t largest_code() const {
    if (table == CodeTable::None) return (1 << (low_bits + high_bits)) - 1;
    std::int64_t largest = 0;
    const CodeValues codes = code_values(table);
    for (const std::uint8_t code : codes.of) largest = code > largest ? code : largest;
    return largest;
  }
  constexpr std::int64_t smallest_code() const {
    if (table == CodeTable::None) return 0;
    std::int64_t smallest = largest_code();
    const CodeValues codes = code_values(table);
    for (const std::uint8_t code : codes.of) smallest = code < smallest ? code : smallest;
    return smallest;
  }
  /// Codes that do not fit a signed byte. Their offset is 128.
  constexpr bool has_wide_codes() const { return largest_code() > 127; }
  constexpr std::int64_t largest_sum() const {
    return std::int64_t{elements} * 127 * largest_scale * (largest_code() + offset);
  }
};

/// True for the quantised types.
constexpr bool has_row_groups(TensorType type) {
  return type != TensorType::F32 && type != TensorType::F16 && type != TensorType::BF16;
}

/// Precondition: has_row_groups(type).
constexpr GroupFormat group_format(TensorType type) {
  switch (type) {
    case TensorType::Q4_0:
      return {32, 4, 0, 8, false};
    case TensorType::Q4_1:
      return {32, 4, 0, 0, true};
    case TensorType::Q5_0:
      return {32, 4, 1, 16, false};
    case TensorType::Q5_1:
      return {32, 4, 1, 0, true};
    case TensorType::Q8_0:
      return {32, 8, 0, 128, false};
    case TensorType::Q2_K:
      return {256, 2, 0, 0, true, 8, 16, 15};
    case TensorType::Q3_K:
      return {256, 2, 1, 4, false, 6, 16, 32};
    case TensorType::Q4_K:
      return {256, 4, 0, 0, true, 6, 32, 63};
    case TensorType::Q5_K:
      return {256, 4, 1, 0, true, 6, 32, 63};
    case TensorType::Q6_K:
      return {256, 4, 2, 32, false, 8, 16, 128};
    case TensorType::IQ4_NL:
      return {32, 4, 0, kIq4Offset, false, 0, 0, 1, CodeTable::Iq4};
    case TensorType::IQ4_XS:
      return {256, 4, 0, kIq4Offset, false, 6, 32, 32, CodeTable::Iq4, 8};
    case TensorType::MXFP4:
      return {.elements = 32,
              .low_bits = 4,
              .high_bits = 0,
              .offset = kMxfp4Offset,
              .has_min = false,
              .table = CodeTable::Mxfp4,
              .scale_bytes = 1};
    case TensorType::F32:
    case TensorType::F16:
    case TensorType::BF16:
      break;
  }
  __builtin_unreachable();
}

/// Calls visit<type>(). Precondition: has_row_groups(type).
template <class Visit>
constexpr void visit_group_type(TensorType type, Visit&& visit) {
  switch (type) {
    case TensorType::Q4_0:
      return visit.template operator()<TensorType::Q4_0>();
    case TensorType::Q4_1:
      return visit.template operator()<TensorType::Q4_1>();
    case TensorType::Q5_0:
      return visit.template operator()<TensorType::Q5_0>();
    case TensorType::Q5_1:
      return visit.template operator()<TensorType::Q5_1>();
    case TensorType::Q8_0:
      return visit.template operator()<TensorType::Q8_0>();
    case TensorType::Q2_K:
      return visit.template operator()<TensorType::Q2_K>();
    case TensorType::Q3_K:
      return visit.template operator()<TensorType::Q3_K>();
    case TensorType::Q4_K:
      return visit.template operator()<TensorType::Q4_K>();
    case TensorType::Q5_K:
      return visit.template operator()<TensorType::Q5_K>();
    case TensorType::Q6_K:
      return visit.template operator()<TensorType::Q6_K>();
    case TensorType::IQ4_NL:
      return visit.template operator()<TensorType::IQ4_NL>();
    case TensorType::IQ4_XS:
      return visit.template operator()<TensorType::IQ4_XS>();
    case TensorType::MXFP4:
      return visit.template operator()<TensorType::MXFP4>();
    case TensorType::F32:
    case TensorType::F16:
    case TensorType::BF16:
      break;
  }
  __builtin_unreachable();
}

// A block of a group has as many bytes as its sixteen blocks in the file, and its sums fit 32 bits.
static_assert([] {
  for (const TensorTypeRow& row : kTensorTypeRows) {
    const auto type = static_cast<TensorType>(&row - kTensorTypeRows);
    if (row.block.size_bytes == 0 || !has_row_groups(type)) continue;
    const GroupFormat format = group_format(type);
    if (format.elements != row.block.elements || format.largest_sum() > INT32_MAX ||
        format.size_bytes() != kGroupRows * row.block.size_bytes)
      return false;
  }
  return true;
}());

}  // namespace leasehold
