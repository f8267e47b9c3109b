#include "tools/make_model/value_codes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/numerics/f16.hpp"
#include "kernels/quant/code_values.hpp"
#include "kernels/quant/super_blocks.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold::make_model {
namespace {

constexpr std::size_t kCodeBlock = 32;
constexpr std::size_t kSubBlocks = 8;  // of IQ4_XS

using Values = std::array<float, 16>;

Values values_of(CodeTable table, int offset) {
  Values values;
  for (std::size_t c = 0; c < values.size(); ++c)
    values[c] = static_cast<float>(code_values(table).of[c] - offset);
  return values;
}
const Values kIq4Values = values_of(CodeTable::Iq4, kIq4Offset);
const Values kMxfp4Values = values_of(CodeTable::Mxfp4, kMxfp4Offset);

/// The code of the nearest value, the lower code of equally near ones.
unsigned nearest_code(const Values& values, float scaled) {
  const auto* best = std::ranges::min_element(
      values, {}, [scaled](float value) { return std::fabs(value - scaled); });
  return static_cast<unsigned>(best - values.data());
}

/// Packs the codes of 32 weights: byte i has weight i in its low half, weight i + 16 in its high
/// half.
void pack_codes(const Values& values, const float* weights, float scale, std::byte* out) {
  const auto code = [&](std::size_t i) {
    return nearest_code(values, scale != 0.0f ? weights[i] / scale : 0.0f);
  };
  for (std::size_t i = 0; i < kCodeBlock / 2; ++i)
    out[i] = static_cast<std::byte>(code(i) | code(i + kCodeBlock / 2) << 4);
}

float extreme_of(const float* weights) {
  return *std::max_element(weights, weights + kCodeBlock,
                           [](float a, float b) { return std::fabs(a) < std::fabs(b); });
}

/// The scale with which the extreme weight has the first code.
float iq4_scale(const float* weights) {
  return extreme_of(weights) / kIq4Values[0];
}

}  // namespace

std::byte* pack_iq4_nl_block(const float* weights, std::byte* out) {
  const Half scale = f16_from_f32(iq4_scale(weights));
  std::memcpy(out, &scale, sizeof scale);
  pack_codes(kIq4Values, weights, f32_from_f16(scale), out + sizeof scale);
  return out + block_shape(TensorType::IQ4_NL).size_bytes;
}

std::byte* pack_iq4_xs_block(const float* weights, std::byte* out) {
  using Fields = Iq4XsFields;
  std::array<float, kSubBlocks> scales;
  for (std::size_t s = 0; s < kSubBlocks; ++s) scales[s] = iq4_scale(weights + s * kCodeBlock);
  float largest = 0.0f;
  for (const float scale : scales) largest = std::max(largest, std::fabs(scale));
  const Half d = f16_from_f32(largest / 31.0f);
  const float step = f32_from_f16(d);
  std::fill_n(out, block_shape(TensorType::IQ4_XS).size_bytes, std::byte{});
  std::memcpy(out + Fields::kD, &d, sizeof d);
  for (std::size_t s = 0; s < kSubBlocks; ++s) {
    const float ratio = step != 0.0f ? scales[s] / step : 0.0f;
    const int scale = std::clamp(static_cast<int>(ratio + (ratio < 0 ? -0.5f : 0.5f)), -32, 31);
    const auto code = static_cast<unsigned>(scale + 32);
    out[Fields::kLow + s / 2] |= static_cast<std::byte>((code & 15) << (4 * (s % 2)));
    out[Fields::kHigh + s / 4] |= static_cast<std::byte>((code >> 4) << (2 * (s % 4)));
    pack_codes(kIq4Values, weights + s * kCodeBlock, step * static_cast<float>(scale),
               out + Fields::kQuants + s * kCodeBlock / 2);
  }
  return out + block_shape(TensorType::IQ4_XS).size_bytes;
}

/// The scale is the power of two with which the extreme weight is between 4 and 8; the largest
/// value is 6. A weight of zero has the code of +0.
std::byte* pack_mxfp4_block(const float* weights, std::byte* out) {
  constexpr int kBias = 127;
  int exponent = -kBias;
  const float extreme = std::fabs(extreme_of(weights));
  if (extreme > 0.0f) exponent = std::max(std::ilogb(extreme) - 2, -kBias);
  out[0] = static_cast<std::byte>(exponent + kBias);
  pack_codes(kMxfp4Values, weights, std::ldexp(0.5f, exponent), out + 1);
  return out + block_shape(TensorType::MXFP4).size_bytes;
}

}  // namespace leasehold::make_model
