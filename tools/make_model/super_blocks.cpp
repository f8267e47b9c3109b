#include "tools/make_model/super_blocks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/numerics/f16.hpp"
#include "kernels/quant/super_blocks.hpp"

namespace leasehold::make_model {
namespace {

void store_half(std::byte* at, float value) {
  const Half half = f16_from_f32(value);
  std::memcpy(at, &half, sizeof half);
}

/// Rounds the value to half precision and back, as a reader will see it.
float as_half(float value) {
  return f32_from_f16(f16_from_f32(value));
}

/// The code nearest to value / step, with halves rounded away from zero; 0 for a step of 0.
int nearest(float value, float step, int least, int most) {
  if (step == 0.0f) return std::clamp(0, least, most);
  const float ratio = value / step;
  return std::clamp(static_cast<int>(ratio + (ratio < 0.0f ? -0.5f : 0.5f)), least, most);
}

std::byte bits(int value) {
  return static_cast<std::byte>(value & 255);
}

/// The eight 6-bit scales and minima of a Q4_K block, as q4_scale_and_min reads them.
void store_scales(std::byte* at, const std::array<int, 8>& scales, const std::array<int, 8>& mins) {
  for (std::size_t s = 0; s < 4; ++s) {
    at[s] = bits(scales[s] | scales[s + 4] >> 4 << 6);
    at[s + 4] = bits(mins[s] | mins[s + 4] >> 4 << 6);
    at[s + 8] = bits((scales[s + 4] & 15) | (mins[s + 4] & 15) << 4);
  }
}

}  // namespace

std::byte* pack_q4_k_block(const float* weights, std::byte* out) {
  using Fields = Q4KFields;
  std::array<float, 8> steps;
  std::array<float, 8> lows;  // the minimum is subtracted, so it is not negative
  for (std::size_t s = 0; s < 8; ++s) {
    const auto [least, most] = std::minmax_element(weights + s * 32, weights + (s + 1) * 32);
    lows[s] = std::max(-*least, 0.0f);
    steps[s] = std::max(*most + lows[s], 0.0f) / 15.0f;
  }
  const float d = as_half(*std::ranges::max_element(steps) / 63.0f);
  const float dmin = as_half(*std::ranges::max_element(lows) / 63.0f);
  std::array<int, 8> scales;
  std::array<int, 8> mins;
  std::fill_n(out, block_shape(TensorType::Q4_K).size_bytes, std::byte{});
  for (std::size_t s = 0; s < 8; ++s) {
    scales[s] = nearest(steps[s], d, 0, 63);
    mins[s] = nearest(lows[s], dmin, 0, 63);
    const float step = d * static_cast<float>(scales[s]);
    const float low = dmin * static_cast<float>(mins[s]);
    for (std::size_t i = 0; i < 32; ++i) {
      const int code = nearest(weights[s * 32 + i] + low, step, 0, 15);
      out[Fields::kQuants + s / 2 * 32 + i] |= bits(s % 2 == 0 ? code : code << 4);
    }
  }
  store_half(out + Fields::kD, d);
  store_half(out + Fields::kDmin, dmin);
  store_scales(out + Fields::kScales, scales, mins);
  return out + block_shape(TensorType::Q4_K).size_bytes;
}

std::byte* pack_q6_k_block(const float* weights, std::byte* out) {
  using Fields = Q6KFields;
  std::array<float, 16> steps;  // the extreme weight of each sub-block is code -32
  for (std::size_t s = 0; s < 16; ++s)
    steps[s] = *std::max_element(weights + s * 16, weights + (s + 1) * 16, [](float a, float b) {
      return std::fabs(a) < std::fabs(b);
    }) / -32.0f;
  const float largest = *std::ranges::max_element(
      steps, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  const float d = as_half(std::fabs(largest) / 127.0f);
  std::fill_n(out, block_shape(TensorType::Q6_K).size_bytes, std::byte{});
  for (std::size_t e = 0; e < kSuperBlock; ++e) {
    const int scale = nearest(steps[e / 16], d, -127, 127);
    out[Fields::kScales + e / 16] = bits(scale);
    const int code = nearest(weights[e], d * static_cast<float>(scale), -32, 31) + 32;
    const std::size_t low = Fields::kQuants + e / 128 * 64 + e % 64;
    out[low] |= bits(e % 128 < 64 ? code & 15 : (code & 15) << 4);
    out[Fields::kHigh + e / 128 * 32 + e % 32] |= bits((code >> 4) << (2 * (e / 32 % 4)));
  }
  store_half(out + Fields::kD, d);
  return out + block_shape(TensorType::Q6_K).size_bytes;
}

}  // namespace leasehold::make_model
