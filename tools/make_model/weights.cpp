#include "tools/make_model/weights.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "common/expects.hpp"
#include "common/random.hpp"
#include "kernels/numerics/f16.hpp"
#include "tools/make_model/super_blocks.hpp"
#include "tools/make_model/value_codes.hpp"

namespace leasehold::make_model {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written in memory order");

/// The sum of the four bytes of `word`. Its distribution is nearly normal, and the sum is exact.
/// Mean 510, variance 21845.
int sum_of_bytes(std::uint32_t word) {
  const std::uint32_t pairs = (word & 0x00FF'00FF) + (word >> 8 & 0x00FF'00FF);
  return static_cast<int>((pairs & 0xFFFF) + (pairs >> 16));
}

constexpr int kSumMean = 510;
constexpr float kSumVariance = 21845.0f;

/// weight = centre + scale · (sum - mean)
struct Distribution {
  float centre;
  float scale;
};

Distribution distribution_of(const PlannedTensor& tensor) {
  // sqrt and division are correctly rounded everywhere.
  const float unit = 1.0f / std::sqrt(kSumVariance);
  switch (tensor.fill) {
    case Fill::Matrix:
    case Fill::Gate:
      return {0.0f, unit / std::sqrt(static_cast<float>(tensor.columns))};
    case Fill::Gain:
      return {1.0f, 0.1f * unit};
    case Fill::Bias:
      return {0.0f, 0.1f * unit};
    case Fill::Divisor:
      return {2.0f, 0.5f * unit};
    case Fill::Decay:
      return {-1.0f, 0.2f * unit};
  }
  return {0.0f, 0.0f};
}

float sample(const Distribution& distribution, std::uint32_t word) {
  const auto step = static_cast<float>(sum_of_bytes(word) - kSumMean);
  return distribution.centre + distribution.scale * step;
}

/// Rounds to the nearest integer, halves away from zero.
int round_to_int(float value) {
  return static_cast<int>(value + (value < 0.0f ? -0.5f : 0.5f));
}

template <class Value>
std::byte* store(std::byte* out, Value value) {
  std::memcpy(out, &value, sizeof value);
  return out + sizeof value;
}

void pack_f16(std::span<const float> weights, std::byte* out) {
  for (const float weight : weights) out = store(out, f16_from_f32(weight));
}

constexpr std::size_t kBlock = 32;

/// Scale = largest magnitude / 127, then 32 signed bytes.
std::byte* pack_q8_0_block(const float* weights, std::byte* out) {
  float largest = 0.0f;
  for (std::size_t i = 0; i < kBlock; ++i) largest = std::max(largest, std::fabs(weights[i]));
  const float scale = largest / 127.0f;
  const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
  out = store(out, f16_from_f32(scale));
  for (std::size_t i = 0; i < kBlock; ++i) {
    out = store(out, static_cast<std::int8_t>(round_to_int(weights[i] * inverse)));
  }
  return out;
}

/// A Q4_0 code, 0 to 15; 8 means zero.
std::uint8_t nibble(float scaled) {
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(scaled + 8.5f), 0, 15));
}

/// Scale = the weight of largest magnitude / -8, so that this weight is exactly nibble 0. Byte i
/// holds weight i in its low half and weight i + 16 in its high half.
std::byte* pack_q4_0_block(const float* weights, std::byte* out) {
  const float extreme = *std::max_element(
      weights, weights + kBlock, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  const float scale = extreme / -8.0f;
  const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
  out = store(out, f16_from_f32(scale));
  for (std::size_t i = 0; i < kBlock / 2; ++i) {
    const unsigned low = nibble(weights[i] * inverse);
    const unsigned high = nibble(weights[i + kBlock / 2] * inverse);
    out = store(out, static_cast<std::uint8_t>(low | high << 4));
  }
  return out;
}

/// Scale = the weight of largest magnitude / -16, then the fifth bits and the nibbles as in Q4_0.
std::byte* pack_q5_0_block(const float* weights, std::byte* out) {
  const float extreme = *std::max_element(
      weights, weights + kBlock, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  const float scale = extreme / -16.0f;
  const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
  std::array<unsigned, kBlock> codes;
  std::uint32_t fifth_bits = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    codes[i] =
        static_cast<unsigned>(std::clamp(static_cast<int>(weights[i] * inverse + 16.5f), 0, 31));
    fifth_bits |= codes[i] >> 4 << i;
  }
  out = store(out, f16_from_f32(scale));
  out = store(out, fifth_bits);
  for (std::size_t i = 0; i < kBlock / 2; ++i)
    out = store(out, static_cast<std::uint8_t>((codes[i] & 15) | (codes[i + 16] & 15) << 4));
  return out;
}

template <class PackBlock>
void pack_blocks(std::span<const float> weights, std::byte* out, PackBlock pack_block,
                 std::size_t block = kBlock) {
  for (std::size_t i = 0; i < weights.size(); i += block) out = pack_block(&weights[i], out);
}

}  // namespace

void fill_weights(const PlannedTensor& tensor, std::uint64_t stream, std::uint64_t first,
                  std::span<float> out) {
  expects(first % 2 == 0, "one random number makes two weights");
  const Distribution distribution = distribution_of(tensor);
  for (std::size_t i = 0; i < out.size(); i += 2) {
    const std::uint64_t bits = random_at(stream, (first + i) / 2);
    out[i] = sample(distribution, static_cast<std::uint32_t>(bits));
    if (i + 1 < out.size()) {
      out[i + 1] = sample(distribution, static_cast<std::uint32_t>(bits >> 32));
    }
  }
}

void pack_weights(TensorType type, std::span<const float> weights, std::span<std::byte> out) {
  expects(weights.size() % block_shape(type).elements == 0, "weights are whole blocks");
  expects(out.size() == row_size_bytes(type, weights.size()), "room for exactly these weights");
  switch (type) {
    case TensorType::F32:
      std::memcpy(out.data(), weights.data(), out.size());
      return;
    case TensorType::F16:
      return pack_f16(weights, out.data());
    case TensorType::Q4_0:
      return pack_blocks(weights, out.data(), pack_q4_0_block);
    case TensorType::Q5_0:
      return pack_blocks(weights, out.data(), pack_q5_0_block);
    case TensorType::Q8_0:
      return pack_blocks(weights, out.data(), pack_q8_0_block);
    case TensorType::Q4_K:
      return pack_blocks(weights, out.data(), pack_q4_k_block, kSuperBlock);
    case TensorType::Q6_K:
      return pack_blocks(weights, out.data(), pack_q6_k_block, kSuperBlock);
    case TensorType::IQ4_NL:
      return pack_blocks(weights, out.data(), pack_iq4_nl_block);
    case TensorType::IQ4_XS:
      return pack_blocks(weights, out.data(), pack_iq4_xs_block, kSuperBlock);
    case TensorType::MXFP4:
      return pack_blocks(weights, out.data(), pack_mxfp4_block);
    default:
      expects(false, "the weight type of a request can be written");
  }
}

}  // namespace leasehold::make_model
