#include "kernels/quant/dequantize.hpp"

#include <cstring>

#include "common/expects.hpp"
#include "kernels/quant/block_bytes.hpp"
#include "kernels/quant/super_blocks.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kBlock = 32;  // elements of a small block

void q8_0_block(const std::byte* block, float* out) {
  const float d = read_half(block);
  for (std::size_t i = 0; i < kBlock; ++i)
    out[i] = d * static_cast<float>(read_int8(block + kHalfBytes + i));
}

/// The four low bits of element i: two elements to a byte, half a block apart.
int four_bits(const std::byte* quants, std::size_t i) {
  return read_byte(quants + i % 16) >> (i < 16 ? 0 : 4) & 15;
}

/// Element i of a block whose fifth bits precede the four low bits.
int five_bits(const std::byte* high, std::size_t i) {
  const int fifth = read_byte(high + i / 8) >> (i % 8) & 1;
  return four_bits(high + 4, i) | fifth << 4;
}

void q4_0_block(const std::byte* block, float* out) {
  const float d = read_half(block);
  for (std::size_t i = 0; i < kBlock; ++i)
    out[i] = d * static_cast<float>(four_bits(block + kHalfBytes, i) - 8);
}

void q4_1_block(const std::byte* block, float* out) {
  const float d = read_half(block);
  const float m = read_half(block + kHalfBytes);
  for (std::size_t i = 0; i < kBlock; ++i)
    out[i] = d * static_cast<float>(four_bits(block + 2 * kHalfBytes, i)) + m;
}

void q5_0_block(const std::byte* block, float* out) {
  const float d = read_half(block);
  for (std::size_t i = 0; i < kBlock; ++i)
    out[i] = d * static_cast<float>(five_bits(block + kHalfBytes, i) - 16);
}

void q5_1_block(const std::byte* block, float* out) {
  const float d = read_half(block);
  const float m = read_half(block + kHalfBytes);
  for (std::size_t i = 0; i < kBlock; ++i)
    out[i] = d * static_cast<float>(five_bits(block + 2 * kHalfBytes, i)) + m;
}

void f16_element(const std::byte* source, float* out) {
  *out = read_half(source);
}

void bf16_element(const std::byte* source, float* out) {
  *out = read_bfloat(source);
}

template <void (*kBlockOf)(const std::byte*, float*)>
void each_block(BlockShape shape, const std::byte* source, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; i += shape.elements, source += shape.size_bytes)
    kBlockOf(source, out + i);
}

}  // namespace

void dequantize_row(TensorType type, const std::byte* source, float* out, std::size_t n) {
  const BlockShape shape = block_shape(type);
  expects(n % shape.elements == 0, "a row is a whole number of blocks");
  switch (type) {
    case TensorType::F32:
      std::memcpy(out, source, n * sizeof(float));
      return;
    case TensorType::F16:
      return each_block<f16_element>(shape, source, out, n);
    case TensorType::BF16:
      return each_block<bf16_element>(shape, source, out, n);
    case TensorType::Q8_0:
      return each_block<q8_0_block>(shape, source, out, n);
    case TensorType::Q4_0:
      return each_block<q4_0_block>(shape, source, out, n);
    case TensorType::Q4_1:
      return each_block<q4_1_block>(shape, source, out, n);
    case TensorType::Q5_0:
      return each_block<q5_0_block>(shape, source, out, n);
    case TensorType::Q5_1:
      return each_block<q5_1_block>(shape, source, out, n);
    case TensorType::Q2_K:
      return each_block<dequantize_q2_k>(shape, source, out, n);
    case TensorType::Q3_K:
      return each_block<dequantize_q3_k>(shape, source, out, n);
    case TensorType::Q4_K:
      return each_block<dequantize_q4_k>(shape, source, out, n);
    case TensorType::Q5_K:
      return each_block<dequantize_q5_k>(shape, source, out, n);
    case TensorType::Q6_K:
      return each_block<dequantize_q6_k>(shape, source, out, n);
  }
}

}  // namespace leasehold
