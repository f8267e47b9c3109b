/// The storage types of tensors, with the block sizes of the GGUF format.
///
/// Source: the GGUF specification's type numbers, and the documented block sizes of ggml's types.
/// C++20-clean.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace leasehold {

/// The types that kernels support. Values and names are GGUF's.
// NOLINTBEGIN(readability-identifier-naming)
enum class TensorType : std::uint32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  IQ4_NL = 20,
  IQ4_XS = 23,
  BF16 = 30,
  MXFP4 = 39,
};
// NOLINTEND(readability-identifier-naming)

/// A block has `elements` numbers in `size_bytes` bytes. A row is a whole number of blocks.
struct BlockShape {
  std::uint32_t elements;
  std::uint32_t size_bytes;
};

/// The name and block shape of a GGUF type number. Size 0: the name is known, but kernels do not
/// support the type.
struct TensorTypeRow {
  std::string_view name;
  BlockShape block = {1, 0};
};

/// Indexed by GGUF number. Numbers without a name are unassigned or withdrawn.
inline constexpr TensorTypeRow kTensorTypeRows[] = {
    {"F32", {1, 4}},
    {"F16", {1, 2}},
    {"Q4_0", {32, 18}},  // half d | 32 × 4 bits
    {"Q4_1", {32, 20}},  // half d, m | 32 × 4 bits
    {},
    {},
    {"Q5_0", {32, 22}},  // half d | 32 fifth bits | 32 × 4 bits
    {"Q5_1", {32, 24}},  // half d, m | 32 fifth bits | 32 × 4 bits
    {"Q8_0", {32, 34}},  // half d | 32 × int8
    {"Q8_1"},
    {"Q2_K", {256, 84}},   // 16 scales and minima of 4 bits | 256 × 2 bits | half d, dmin
    {"Q3_K", {256, 110}},  // 256 third bits | 256 × 2 bits | 16 scales of 6 bits | half d
    {"Q4_K", {256, 144}},  // half d, dmin | 8 scales and minima of 6 bits | 256 × 4 bits
    {"Q5_K", {256, 176}},  // half d, dmin | as Q4_K | 256 fifth bits | 256 × 4 bits
    {"Q6_K", {256, 210}},  // 256 × 4 bits | 256 × 2 high bits | 16 × int8 scale | half d
    {"Q8_K"},
    {"IQ2_XXS"},
    {"IQ2_XS"},
    {"IQ3_XXS"},
    {"IQ1_S"},
    {"IQ4_NL", {32, 18}},  // half d | 32 × 4 bits
    {"IQ3_S"},
    {"IQ2_S"},
    {"IQ4_XS", {256, 136}},  // half d | 8 scales of 6 bits | 256 × 4 bits
    {"I8"},
    {"I16"},
    {"I32"},
    {"I64"},
    {"F64"},
    {"IQ1_M"},
    {"BF16", {1, 2}},
    {},
    {},
    {},
    {"TQ1_0"},
    {"TQ2_0"},
    {},
    {},
    {},
    {"MXFP4", {32, 17}},  // exponent | 32 × 4 bits
};

constexpr BlockShape block_shape(TensorType type) {
  return kTensorTypeRows[static_cast<std::uint32_t>(type)].block;
}

/// The size of a row of `n` elements; `n` is a multiple of the block's elements.
constexpr std::uint64_t row_size_bytes(TensorType type, std::uint64_t n) {
  const BlockShape shape = block_shape(type);
  return n / shape.elements * shape.size_bytes;
}

constexpr std::string_view name(TensorType type) {
  return kTensorTypeRows[static_cast<std::uint32_t>(type)].name;
}

/// The GGUF name of a type number, whether kernels support it or not. Empty if unknown.
constexpr std::string_view gguf_type_name(std::uint32_t number) {
  return number < std::size(kTensorTypeRows) ? kTensorTypeRows[number].name : std::string_view{};
}

/// nullopt for a number that kernels do not support.
constexpr std::optional<TensorType> tensor_type_from_gguf(std::uint32_t number) {
  if (number >= std::size(kTensorTypeRows) || kTensorTypeRows[number].block.size_bytes == 0)
    return std::nullopt;
  return static_cast<TensorType>(number);
}

}  // namespace leasehold
