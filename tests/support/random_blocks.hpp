/// Random numbers and blocks of weights, and the comparison of results bit for bit.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "common/random.hpp"
#include "kernels/numerics/f16.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold::testing {

inline constexpr TensorType kEveryType[] = {
    TensorType::F32,  TensorType::F16,    TensorType::BF16,   TensorType::Q4_0,
    TensorType::Q4_1, TensorType::Q5_0,   TensorType::Q5_1,   TensorType::Q8_0,
    TensorType::Q2_K, TensorType::Q3_K,   TensorType::Q4_K,   TensorType::Q5_K,
    TensorType::Q6_K, TensorType::IQ4_NL, TensorType::IQ4_XS, TensorType::MXFP4};

inline std::vector<float> random_floats(SeededRandom& random, std::size_t n, float reach = 1.0F) {
  std::vector<float> values(n);
  for (float& value : values)
    value = (static_cast<float>(random.below(1u << 24)) * 0x1p-23F - 1.0F) * reach;
  return values;
}

/// The offsets of a block's halves; other bytes may hold anything.
inline std::vector<std::size_t> scale_places(TensorType type) {
  switch (type) {
    case TensorType::Q4_1:
    case TensorType::Q5_1:
    case TensorType::Q4_K:
    case TensorType::Q5_K:
      return {0, 2};
    case TensorType::Q2_K:
      return {80, 82};
    case TensorType::Q3_K:
      return {108};
    case TensorType::Q6_K:
      return {208};
    default:
      return {0};
  }
}

/// Random bytes, with scales (or the element itself) of at most 0.02.
inline void fill_block(SeededRandom& random, TensorType type, std::byte* block) {
  const std::uint32_t size_bytes = block_shape(type).size_bytes;
  for (std::uint32_t i = 0; i < size_bytes; ++i)
    block[i] = static_cast<std::byte>(random.below(256));
  if (type == TensorType::MXFP4) {
    block[0] = static_cast<std::byte>(111 + random.below(8));  // 2^-16 … 2^-9
    return;
  }
  for (const std::size_t place : scale_places(type)) {
    const float scale = random_floats(random, 1, 0.02F)[0];
    const auto bits = std::bit_cast<std::uint32_t>(scale);
    const auto half =
        type == TensorType::BF16 ? static_cast<std::uint16_t>(bits >> 16) : f16_from_f32(scale);
    if (type == TensorType::F32)
      std::memcpy(block, &scale, sizeof scale);
    else
      std::memcpy(block + place, &half, sizeof half);
  }
}

/// Index of the first element whose bits differ, or -1.
inline std::ptrdiff_t first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return 0;
  const auto same = [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  };
  const auto at = std::ranges::mismatch(a, b, same);
  return at.in1 == a.end() ? -1 : at.in1 - a.begin();
}

}  // namespace leasehold::testing
