#include "kernels/quant/dequantize.hpp"

#include <cstring>

#include "common/expects.hpp"
#include "kernels/numerics/f16.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kBlock = 32;  // elements of a quantised block
constexpr std::size_t kScale = sizeof(Half);

float read_half(const std::byte* at) {
  Half half;
  std::memcpy(&half, at, sizeof half);
  return f32_from_f16(half);
}

void f16_row(const std::byte* source, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = read_half(source + i * sizeof(Half));
}

void q8_0_row(const std::byte* source, float* out, std::size_t n) {
  for (; n > 0; n -= kBlock, out += kBlock, source += kScale + kBlock) {
    const float d = read_half(source);
    for (std::size_t i = 0; i < kBlock; ++i) {
      const auto q = static_cast<std::int8_t>(source[kScale + i]);
      out[i] = d * static_cast<float>(q);
    }
  }
}

void q4_0_row(const std::byte* source, float* out, std::size_t n) {
  for (; n > 0; n -= kBlock, out += kBlock, source += kScale + kBlock / 2) {
    const float d = read_half(source);
    for (std::size_t i = 0; i < kBlock / 2; ++i) {
      const auto pair = std::to_integer<int>(source[kScale + i]);
      out[i] = d * static_cast<float>((pair & 15) - 8);
      out[i + kBlock / 2] = d * static_cast<float>((pair >> 4) - 8);
    }
  }
}

}  // namespace

void dequantize_row(TensorType type, const std::byte* source, float* out, std::size_t n) {
  expects(n % block_shape(type).elements == 0, "a row is a whole number of blocks");
  switch (type) {
    case TensorType::F32:
      std::memcpy(out, source, n * sizeof(float));
      return;
    case TensorType::F16:
      return f16_row(source, out, n);
    case TensorType::Q8_0:
      return q8_0_row(source, out, n);
    case TensorType::Q4_0:
      return q4_0_row(source, out, n);
  }
}

}  // namespace leasehold
