#include "kernels/model/rope_config.hpp"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "common/utf8.hpp"
#include "kernels/model/architecture.hpp"
#include "kernels/model/architecture_keys.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kMaxDim = 1024;

// The angles of the longest context must stay in the range of sin_cos: 2^24 · 64 = 2^30.
constexpr float kMinFreqFactor = 1.0f / 64;
// Files write 1e30 for pairs that are not rotated.
constexpr float kMaxFreqFactor = 1e31f;

constexpr float kMaxTurns = 65536.0f;
constexpr float kMaxMagnitude = 1024.0f;

/// A parameter of yarn: its key, its default, and its largest value; the smallest one is 0.
Result<double> yarn_parameter(const ArchitectureKeys& keys, std::string_view suffix,
                              double fallback, float largest) {
  const auto value = TRY(keys.get_or<float>(suffix, static_cast<float>(fallback)));
  if (value >= 0.0f && value <= largest) return value;
  return keys.corrupt("{} is {}, not between 0 and {}", keys.key(suffix), value, largest);
}

Result<YarnScaling> read_yarn(const ArchitectureKeys& keys, std::uint32_t n_context,
                              const RopeConfig& config) {
  YarnScaling yarn{.base = config.base, .rope_dim = config.dim, .factor = config.factor};
  yarn.original_context =
      TRY(keys.count_or("rope.scaling.original_context_length", kMaxContext, n_context));
  for (const auto& [suffix, parameter, largest] :
       {std::tuple("rope.scaling.yarn_beta_fast", &YarnScaling::beta_fast, kMaxTurns),
        std::tuple("rope.scaling.yarn_beta_slow", &YarnScaling::beta_slow, kMaxTurns),
        std::tuple("rope.scaling.yarn_ext_factor", &YarnScaling::extrapolation, 1.0f),
        std::tuple("rope.scaling.yarn_log_multiplier", &YarnScaling::log_multiplier,
                   kMaxMagnitude)})
    yarn.*parameter = TRY(yarn_parameter(keys, suffix, yarn.*parameter, largest));
  if (yarn.beta_slow == 0.0 || yarn.beta_fast < yarn.beta_slow)
    return keys.corrupt("{} is {} and yarn_beta_slow {}; they must be above 0 and descend",
                        keys.key("rope.scaling.yarn_beta_fast"), yarn.beta_fast, yarn.beta_slow);
  return yarn;
}

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
  if (config.scaling == RopeScaling::Yarn) config.yarn = TRY(read_yarn(keys, n_context, config));
  return {};
}

/// The pairs of the rotation. Models that also read images divide the pairs into sections, one for
/// each coordinate of a position. All coordinates of a text are equal, so the sections do not
/// matter, but files with sections keep the rows of queries and keys in the order of halves.
/// Source: llama.cpp, which takes sections into account if the first two are not 0.
Result<RopeStyle> read_style(const ArchitectureKeys& keys, const Architecture& architecture) {
  constexpr std::string_view kKey = "rope.dimension_sections";
  if (architecture.rope_style == RopeStyle::Halves || !keys.has(kKey))
    return architecture.rope_style;
  const auto sections = TRY(keys.get<std::vector<std::int32_t>>(kKey));
  const bool has_sections = sections.size() >= 2 && sections[0] > 0 && sections[1] > 0;
  return has_sections ? RopeStyle::Halves : architecture.rope_style;
}

Result<void> check_dim(const ArchitectureKeys& keys, std::string_view suffix, std::uint32_t dim,
                       std::uint32_t head_dim) {
  if (dim % 2 == 0 && dim <= head_dim) return {};
  return keys.corrupt("{} is {}; it must be even and at most {}, the width of a head",
                      keys.key(suffix), dim, head_dim);
}

/// The factor of sines and cosines besides that of yarn. A file may name the latter: 1.2079 for a
/// factor of 8 is what yarn gives, and not a second factor. Latent attention has its own; see
/// adapt_magnitude.
Result<float> read_magnitude(const ArchitectureKeys& keys, const Architecture& architecture,
                             const RopeConfig& config) {
  constexpr std::string_view kFactor = "rope.scaling.attn_factor";
  constexpr std::string_view kOfYarn = "rope.scaling.yarn_attn_factor";
  const auto factor = TRY(keys.get_or<float>(kFactor, 1.0f));
  const float magnitude = TRY(keys.between(kFactor, 0.0f, kMaxMagnitude, factor));
  const auto of_yarn = TRY(keys.get_or<float>(kOfYarn, 1.0f));
  TRY(keys.between(kOfYarn, 0.0f, kMaxMagnitude, of_yarn));
  const bool is_yarn = config.scaling == RopeScaling::Yarn && !architecture.has_latent_attention;
  if (!is_yarn || !keys.has(kOfYarn)) return magnitude;
  return magnitude * of_yarn / yarn_angles(config.yarn).magnitude;
}

Result<QueryTemperature> read_query_temperature(const ArchitectureKeys& keys) {
  constexpr std::string_view kKey = "attention.temperature_scale";
  constexpr std::string_view kStep = "attention.temperature_length";
  const auto growth = TRY(keys.get_or<float>(kKey, 0.0f));
  if (growth == 0.0f) return QueryTemperature{};
  QueryTemperature temperature;
  temperature.growth = TRY(keys.between(kKey, 0.0f, kMaxMagnitude, growth));
  const auto step = keys.has(kStep) ? kStep : "rope.scaling.original_context_length";
  temperature.step = TRY(keys.count(step, kMaxContext));
  return temperature;
}

/// Some models have a tensor with one divisor per frequency. The forward pass does not use it as a
/// weight, so it is read once, here. Empty if the file has no such tensor.
Result<std::vector<float>> read_factors(const GgufFile& file, const ArchitectureKeys& keys,
                                        std::string_view tensor_name, std::uint32_t pairs) {
  const GgufTensor* tensor = file.find(tensor_name);
  if (tensor == nullptr) return std::vector<float>{};
  if (tensor->type != TensorType::F32)
    return keys.unsupported("vector {} is {}; this build reads F32", tensor_name,
                            name(tensor->type));
  if (tensor->rows() != 1 || tensor->columns() != pairs)
    return keys.corrupt("tensor {} has {} rows of {}; the metadata makes it {} pairs", tensor_name,
                        tensor->rows(), tensor->columns(), pairs);
  std::vector<float> factors(pairs);
  TRY(file.read(*tensor, 0, std::as_writable_bytes(std::span(factors))));
  if (std::ranges::all_of(factors,
                          [](float d) { return d >= kMinFreqFactor && d < kMaxFreqFactor; }))
    return factors;
  return keys.corrupt("tensor {} has a value that is not a valid divisor", tensor_name);
}

Result<void> read_all_factors(const GgufFile& file, const ArchitectureKeys& keys,
                              const Architecture& architecture, RopeConfig& config) {
  const std::uint32_t pairs = config.dim / 2;
  config.freq_factors = TRY(read_factors(file, keys, kRopeFreqFactors, pairs));
  config.short_factors = TRY(read_factors(file, keys, kShortRopeFactors, pairs));
  if (config.freq_factors.empty() && architecture.needs_rope_factors)
    TRY(file.tensor(kRopeFreqFactors));
  std::vector<float> of_long = TRY(read_factors(file, keys, kLongRopeFactors, pairs));
  if (config.short_factors.empty() && of_long.empty()) return {};
  for (const auto& [tensor_name, factors] :
       {std::pair(kShortRopeFactors, &config.short_factors), std::pair(kLongRopeFactors, &of_long)})
    if (factors->empty()) TRY(file.tensor(tensor_name));
  if (!config.freq_factors.empty())
    return keys.corrupt("has both {} and {}; one of them must divide the frequencies",
                        kRopeFreqFactors, kLongRopeFactors);
  config.freq_factors = std::move(of_long);
  config.short_context = TRY(keys.count("rope.scaling.original_context_length", kMaxContext));
  return {};
}

/// Checks the divisors that layers with a window have from the other layers, whose heads may be
/// wider or narrower.
Result<void> check_divisors(const ArchitectureKeys& keys, const RopeConfig& config) {
  const std::size_t pairs = config.dim / 2;
  for (const std::vector<float>* divisors : {&config.freq_factors, &config.short_factors})
    if (!divisors->empty() && divisors->size() != pairs)
      return keys.unsupported(
          "layers with a window rotate {} pairs, and the other layers have divisors of {}; this "
          "build needs them equal: {}",
          pairs, divisors->size(), keys.key("rope.dimension_count_swa"));
  return {};
}

}  // namespace

RopeAngles rope_angles(const RopeConfig& config, std::uint32_t n_context) {
  RopeAngles angles{.frequencies = rope_frequencies(config.dim, config.base)};
  if (config.scaling == RopeScaling::Yarn) angles = yarn_angles(config.yarn);
  if (config.scaling == RopeScaling::Linear)
    for (double& frequency : angles.frequencies) frequency /= config.factor;
  const std::vector<float>& factors =
      config.uses_short_factors(n_context) ? config.short_factors : config.freq_factors;
  for (std::size_t i = 0; i < factors.size(); ++i) angles.frequencies[i] /= factors[i];
  angles.magnitude *= config.magnitude;
  return angles;
}

Result<RopeConfig> read_rope(const GgufFile& file, const ArchitectureKeys& keys,
                             std::uint32_t head_dim, std::uint32_t n_context,
                             const Architecture& architecture) {
  const RopeStyle style = TRY(read_style(keys, architecture));
  RopeConfig config{.style = style, .skip_every = architecture.unrotated_layer_every};
  if (architecture.reads_rope_finetuned && !TRY(keys.get_or<bool>("rope.scaling.finetuned", true)))
    config.skip_every = 1;
  config.dim = TRY(keys.count_or("rope.dimension_count", kMaxDim, head_dim));
  const auto base = TRY(keys.get_or<float>("rope.freq_base", 10000.0f));
  TRY(check_dim(keys, "rope.dimension_count", config.dim, head_dim));
  config.base = TRY(keys.between("rope.freq_base", 1.0f, 1e12f, base));
  TRY(read_scaling(keys, n_context, config));
  config.magnitude = TRY(read_magnitude(keys, architecture, config));
  config.query_temperature = TRY(read_query_temperature(keys));
  TRY(read_all_factors(file, keys, architecture, config));
  return config;
}

Result<RopeConfig> read_window_rope(const ArchitectureKeys& keys, const RopeConfig& others,
                                    std::uint32_t head_dim, const WindowRule& rule) {
  constexpr const char* kKey = "rope.freq_base_swa";
  constexpr const char* kDim = "rope.dimension_count_swa";
  const float fallback = rule.freq_base > 0.0f ? rule.freq_base : others.base;
  const auto base = TRY(keys.get_or<float>(kKey, fallback));
  RopeConfig config = others;
  if (rule.rotates_plainly) config = {.style = others.style, .skip_every = others.skip_every};
  config.dim = TRY(keys.count_or(kDim, kMaxDim, std::min(others.dim, head_dim)));
  TRY(check_dim(keys, kDim, config.dim, head_dim));
  TRY(check_divisors(keys, config));
  config.base = TRY(keys.between(kKey, 1.0f, 1e12f, base));
  if (config.scaling != RopeScaling::Yarn) return config;
  config.yarn.base = config.base;
  config.yarn.rope_dim = config.dim;
  return config;
}

}  // namespace leasehold
