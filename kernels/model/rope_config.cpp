#include "kernels/model/rope_config.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "common/utf8.hpp"
#include "kernels/model/architecture_keys.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kMaxDim = 1024;

// The angles of the longest context must stay in the range of sin_cos: 2^24 · 64 = 2^30.
constexpr float kMinFreqFactor = 1.0f / 64;

/// Metadata of yarn scaling that this build does not compute.
constexpr UnsupportedKey kUnsupportedYarnKeys[] = {
    {"rope.scaling.attn_factor", 1.0f},     {"rope.scaling.yarn_log_multiplier", 0.0f},
    {"rope.scaling.yarn_ext_factor", 1.0f}, {"rope.scaling.yarn_attn_factor", 1.0f},
    {"rope.scaling.yarn_beta_fast", 32.0f}, {"rope.scaling.yarn_beta_slow", 1.0f},
};

/// Reads the scaling. A factor without a type means linear scaling, because older files have no
/// type. `scale_linear` is the older key of the factor.
Result<void> read_scaling(const ArchitectureKeys& keys, std::uint32_t n_context,
                          RopeConfig& config) {
  const auto type = TRY(keys.get_or<std::string>("rope.scaling.type", "linear"));
  if (type == "none") return {};  // the factor is unused then
  if (type != "linear" && type != "yarn")
    return keys.unsupported("{} is {}; this build scales positions by \"linear\" and \"yarn\"",
                            keys.key("rope.scaling.type"), printable_excerpt(type));
  const auto suffix = keys.has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  const float factor = TRY(keys.get_or<float>(suffix, 0.0f));
  if (factor == 0.0f || factor == 1.0f) return {};
  config.factor = TRY(keys.between(suffix, 1.0f, 65536.0f, factor));
  config.scaling = type == "yarn" ? RopeScaling::Yarn : RopeScaling::Linear;
  if (config.scaling == RopeScaling::Linear) return {};
  config.original_context =
      TRY(keys.count_or("rope.scaling.original_context_length", kMaxContext, n_context));
  for (const UnsupportedKey& unsupported_key : kUnsupportedYarnKeys) {
    const float value =
        TRY(keys.get_or<float>(unsupported_key.suffix, unsupported_key.neutral_value));
    if (value != unsupported_key.neutral_value)
      return keys.unsupported("{} is {}; this build computes yarn with {}",
                              keys.key(unsupported_key.suffix), value,
                              unsupported_key.neutral_value);
  }
  return {};
}

/// Llama 3.x has a tensor with one divisor per frequency. The forward pass does not use it as a
/// weight, so it is read once, here.
Result<std::vector<float>> read_freq_factors(const GgufFile& file, const ArchitectureKeys& keys,
                                             const RopeConfig& config) {
  const GgufTensor* tensor = file.find(kRopeFreqFactors);
  if (tensor == nullptr) return std::vector<float>{};
  if (tensor->type != TensorType::F32)
    return keys.unsupported("vector {} is {}; this build reads F32", kRopeFreqFactors,
                            name(tensor->type));
  if (tensor->rows() != 1 || tensor->columns() != config.dim / 2)
    return keys.corrupt("tensor {} has {} rows of {}; the metadata makes it {} pairs",
                        kRopeFreqFactors, tensor->rows(), tensor->columns(), config.dim / 2);
  std::vector<float> freq_factors(config.dim / 2);
  TRY(file.read(*tensor, 0, std::as_writable_bytes(std::span(freq_factors))));
  if (std::ranges::all_of(freq_factors, [](float d) { return d >= kMinFreqFactor && d < 1e12f; }))
    return freq_factors;
  return keys.corrupt("tensor {} has a value that is not a valid divisor", kRopeFreqFactors);
}

}  // namespace

Result<RopeConfig> read_rope(const GgufFile& file, const ArchitectureKeys& keys,
                             std::uint32_t head_dim, std::uint32_t n_context, RopeStyle style) {
  RopeConfig config{.style = style};
  config.dim = TRY(keys.count_or("rope.dimension_count", kMaxDim, head_dim));
  const auto base = TRY(keys.get_or<float>("rope.freq_base", 10000.0f));
  if (config.dim % 2 != 0 || config.dim > head_dim)
    return keys.corrupt("{} is {}; it must be even and at most {}, the width of a head",
                        keys.key("rope.dimension_count"), config.dim, head_dim);
  config.base = TRY(keys.between("rope.freq_base", 1.0f, 1e12f, base));
  TRY(read_scaling(keys, n_context, config));
  config.freq_factors = TRY(read_freq_factors(file, keys, config));
  return config;
}

}  // namespace leasehold
