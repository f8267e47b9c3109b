#include "kernels/cpu/neon/activations.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/neon/lanes.hpp"
#include "kernels/numerics/int8_order.hpp"

namespace leasehold::neon {
namespace {

/// The bits of the largest |x| of n elements, a multiple of 4.
std::uint32_t largest_magnitude(const float* x, std::uint32_t n) {
  uint32x4_t largest = vdupq_n_u32(0);
  for (std::uint32_t i = 0; i < n; i += kWidth) {
    const uint32x4_t bits = vreinterpretq_u32_f32(load4(x + i));
    largest = vmaxq_u32(largest, vandq_u32(bits, vdupq_n_u32(0x7FFFFFFF)));
  }
  return vmaxvq_u32(largest);
}

/// Rounds a strip of a block whose scale is a positive number. Returns the sum of its codes.
std::int16_t round_strip(const float* x, float scale, std::int8_t* q) {
  const float32x4_t d = vdupq_n_f32(scale);
  int32x4_t part[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) part[i] = vcvtnq_s32_f32(vdivq_f32(load4(x + i * kWidth), d));
  const int16x8_t low = vcombine_s16(vmovn_s32(part[0]), vmovn_s32(part[1]));
  const int16x8_t high = vcombine_s16(vmovn_s32(part[2]), vmovn_s32(part[3]));
  vst1q_s8(q, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
  return vaddvq_s16(vaddq_s16(low, high));
}

/// The ordered sum of squares around the mean.
float squares_around(const float* x, std::uint32_t n, float mean) {
  Lanes lanes = {};
  const float32x4_t means = vdupq_n_f32(mean);
  const std::uint32_t whole = n / kSumLanes * kSumLanes;
  for (std::uint32_t at = 0; at < whole; at += kSumLanes)
#pragma GCC unroll 8
    for (int p = 0; p < kParts; ++p) {
      const float32x4_t centered = vsubq_f32(load4(x + at + p * kWidth), means);
      lanes[p] = vfmaq_f32(lanes[p], centered, centered);
    }
  float tail[kSumLanes];
  for (std::uint32_t i = whole; i < n; ++i) tail[i - whole] = x[i] - mean;
  return fold_with_tail(lanes, tail, tail, n - whole);
}

}  // namespace

void round_row(const float* x, std::size_t n, std::uint32_t block, const RoundedRowBuffer& out) {
  for (std::size_t begin = 0; begin < n; begin += block) {
    const float d = int8_scale(largest_magnitude(x + begin, block));
    out.scale[begin / block] = d;
    for (std::size_t i = begin; i < begin + block; i += kInt8Strip) {
      std::int16_t& sum = out.sums[i / kInt8Strip];
      if (d > 0) {
        sum = round_strip(x + i, d, out.q + i);
      } else {
        std::fill_n(out.q + i, kInt8Strip, std::int8_t{0});
        sum = 0;
      }
    }
  }
}

void rms_norm_row(const NormRow& row) {
  const auto width = static_cast<float>(row.width);
  const float mean = row.is_centered ? ordered_sum(row.x, row.width) / width : 0.0F;
  const float squares = squares_around(row.x, row.width, mean);
  const float factor = row.scale / std::sqrt(squares / width + row.epsilon);
  const float32x4_t means = vdupq_n_f32(mean);
  std::uint32_t i = 0;
  for (; i + kWidth <= row.width; i += kWidth) {
    float32x4_t value = vmulq_n_f32(vsubq_f32(load4(row.x + i), means), factor);
    if (row.weight != nullptr) value = vmulq_f32(value, load4(row.weight + i));
    if (row.accumulate) value = vaddq_f32(load4(row.out + i), value);
    vst1q_f32(row.out + i, vmulq_n_f32(value, row.out_scale));
  }
  for (; i < row.width; ++i) {
    const float scaled = (row.x[i] - mean) * factor;
    const float value = row.weight != nullptr ? scaled * row.weight[i] : scaled;
    row.out[i] = (row.accumulate ? row.out[i] + value : value) * row.out_scale;
  }
}

void add_scaled(float weight, const float* x, float* out, std::size_t n) {
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    vst1q_f32(out + i, vfmaq_n_f32(load4(out + i), load4(x + i), weight));
  for (; i < n; ++i) out[i] = std::fma(weight, x[i], out[i]);
}

}  // namespace leasehold::neon
