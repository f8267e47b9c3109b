/// How numbers are stored in a tensor, with the sizes the GGUF format gives them.
///
/// Source: the GGUF specification's type numbers and block layouts. C++20-clean.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace leasehold {

/// The types we compute with. Values are GGUF's own numbers.
enum class TensorType : std::uint32_t { F32 = 0, F16 = 1, Q4_0 = 2, Q8_0 = 8 };

/// A row is a whole number of blocks: `elements` numbers stored in `size_bytes`.
struct BlockShape {
  std::uint32_t elements;
  std::uint32_t size_bytes;
};

constexpr BlockShape block_shape(TensorType type) {
  switch (type) {
    case TensorType::F32:
      return {1, 4};
    case TensorType::F16:
      return {1, 2};
    case TensorType::Q4_0:
      return {32, 18};  // f16 scale, 32 × 4 bits
    case TensorType::Q8_0:
      return {32, 34};  // f16 scale, 32 × int8
  }
  return {1, 0};
}

/// Bytes of one row of `n` elements; `n` is a multiple of the block's elements.
constexpr std::uint64_t row_size_bytes(TensorType type, std::uint64_t n) {
  const BlockShape shape = block_shape(type);
  return n / shape.elements * shape.size_bytes;
}

constexpr std::string_view name(TensorType type) {
  switch (type) {
    case TensorType::F32:
      return "F32";
    case TensorType::F16:
      return "F16";
    case TensorType::Q4_0:
      return "Q4_0";
    case TensorType::Q8_0:
      return "Q8_0";
  }
  return "unknown";
}

/// Nothing for a number we do not compute with.
constexpr std::optional<TensorType> tensor_type_from_gguf(std::uint32_t number) {
  switch (number) {
    case 0:
      return TensorType::F32;
    case 1:
      return TensorType::F16;
    case 2:
      return TensorType::Q4_0;
    case 8:
      return TensorType::Q8_0;
    default:
      return std::nullopt;
  }
}

}  // namespace leasehold
