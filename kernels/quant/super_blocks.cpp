#include "kernels/quant/super_blocks.hpp"

namespace leasehold {
namespace {

float times(float d, int q) {
  return d * static_cast<float>(q);
}

int two_bits(const std::byte* quants, std::size_t e) {
  return read_byte(quants + e / 128 * 32 + e % 32) >> (2 * (e / 32 % 4)) & 3;
}

int nibble(const std::byte* quants, std::size_t e) {
  return read_byte(quants + e / 64 * 32 + e % 32) >> (4 * (e / 32 % 2)) & 15;
}

int high_bit(const std::byte* high, std::size_t e) {
  return read_byte(high + e % 32) >> (e / 32) & 1;
}

}  // namespace

void dequantize_q2_k(const std::byte* block, float* out) {
  using Fields = Q2KFields;
  const float d = read_half(block + Fields::kD);
  const float dmin = read_half(block + Fields::kDmin);
  for (std::size_t e = 0; e < kSuperBlock; ++e) {
    const int both = read_byte(block + Fields::kScales + e / 16);
    const float scale = times(d, both & 15);
    out[e] = times(scale, two_bits(block + Fields::kQuants, e)) - times(dmin, both >> 4);
  }
}

void dequantize_q3_k(const std::byte* block, float* out) {
  using Fields = Q3KFields;
  const float d = read_half(block + Fields::kD);
  for (std::size_t e = 0; e < kSuperBlock; ++e) {
    const float scale = times(d, q3_scale(block + Fields::kScales, e / 16));
    const int q = two_bits(block + Fields::kQuants, e) + 4 * high_bit(block + Fields::kHigh, e);
    out[e] = times(scale, q - 4);
  }
}

void dequantize_q4_k(const std::byte* block, float* out) {
  using Fields = Q4KFields;
  const float d = read_half(block + Fields::kD);
  const float dmin = read_half(block + Fields::kDmin);
  for (std::size_t e = 0; e < kSuperBlock; ++e) {
    const ScaleAndMin sub = q4_scale_and_min(block + Fields::kScales, e / 32);
    out[e] = times(times(d, sub.scale), nibble(block + Fields::kQuants, e)) - times(dmin, sub.min);
  }
}

void dequantize_q5_k(const std::byte* block, float* out) {
  using Fields = Q5KFields;
  const float d = read_half(block + Fields::kD);
  const float dmin = read_half(block + Fields::kDmin);
  for (std::size_t e = 0; e < kSuperBlock; ++e) {
    const ScaleAndMin sub = q4_scale_and_min(block + Fields::kScales, e / 32);
    const int q = nibble(block + Fields::kQuants, e) + 16 * high_bit(block + Fields::kHigh, e);
    out[e] = times(times(d, sub.scale), q) - times(dmin, sub.min);
  }
}

void dequantize_q6_k(const std::byte* block, float* out) {
  using Fields = Q6KFields;
  const float d = read_half(block + Fields::kD);
  for (std::size_t e = 0; e < kSuperBlock; ++e) {
    const float scale = times(d, read_int8(block + Fields::kScales + e / 16));
    const int low = read_byte(block + Fields::kQuants + e / 128 * 64 + e % 64);
    const int four = low >> (e % 128 < 64 ? 0 : 4) & 15;
    const int two = two_bits(block + Fields::kHigh, e);
    out[e] = times(scale, (four | two << 4) - 32);
  }
}

}  // namespace leasehold
