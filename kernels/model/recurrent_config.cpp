#include "kernels/model/recurrent_config.hpp"

#include <algorithm>
#include <vector>

#include "kernels/model/architecture.hpp"
#include "kernels/model/architecture_keys.hpp"
#include "kernels/model/config.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kMaxStateHeads = 1024;
constexpr std::uint32_t kMaxStateDim = 1024;
constexpr std::uint32_t kMaxInner = 1u << 18;

constexpr const char* kInterval = "full_attention_interval";
/// One boolean per block of the file: true without attention.
constexpr const char* kRecurrentLayers = "attention.recurrent_layers";

/// True for layers without attention.
Result<std::vector<bool>> read_recurrent_layers(const ArchitectureKeys& keys, const MixerRule& rule,
                                                const ModelConfig& config) {
  std::vector<bool> recurrent(config.n_layers);
  if (rule.attention_every == 0) {
    for (std::uint32_t layer = 0; layer < config.n_layers; ++layer)
      recurrent[layer] = config.layers[layer].n_kv_heads == 0;
    return recurrent;
  }
  if (keys.has(kRecurrentLayers)) {
    recurrent = TRY(keys.get<std::vector<bool>>(kRecurrentLayers));
    const std::uint32_t n_blocks = config.n_layers + config.n_skipped_layers;
    if (recurrent.size() != n_blocks)
      return keys.corrupt("{} has {} elements for {} layers", keys.key(kRecurrentLayers),
                          recurrent.size(), n_blocks);
    recurrent.resize(config.n_layers);
    return recurrent;
  }
  const auto every = TRY(keys.count_or(kInterval, kMaxContext, rule.attention_every));
  for (std::uint32_t layer = 0; layer < config.n_layers; ++layer)
    recurrent[layer] = (layer + 1) % every != 0;
  return recurrent;
}

Result<std::uint32_t> read_taps(const ArchitectureKeys& keys, std::string_view suffix) {
  const auto n_taps = TRY(keys.count(suffix, ConvolutionArgs::kMaxTaps));
  if (n_taps > 1) return n_taps;
  return keys.unsupported("{} is 1; this build needs a convolution of at least 2 positions",
                          keys.key(suffix));
}

/// Reads the shape of a delta net or of Mamba-2.
Result<RecurrentConfig> read_heads(const ArchitectureKeys& keys, const MixerRule& rule) {
  RecurrentConfig shape{.alternates_groups = rule.alternates_groups};
  shape.n_taps = TRY(read_taps(keys, "ssm.conv_kernel"));
  shape.key_dim = TRY(keys.count("ssm.state_size", kMaxStateDim));
  shape.n_groups = TRY(keys.count("ssm.group_count", kMaxStateHeads));
  shape.n_heads = TRY(keys.count("ssm.time_step_rank", kMaxStateHeads));
  const auto inner = TRY(keys.count("ssm.inner_size", kMaxInner));
  if (shape.n_heads % shape.n_groups != 0)
    return keys.corrupt("{} is {}, and {} groups cannot share it evenly",
                        keys.key("ssm.time_step_rank"), shape.n_heads, shape.n_groups);
  if (inner % shape.n_heads != 0 || inner / shape.n_heads > kMaxStateDim)
    return keys.corrupt("{} is {}, which does not divide into {} heads of at most {} elements",
                        keys.key("ssm.inner_size"), inner, shape.n_heads, kMaxStateDim);
  shape.head_dim = inner / shape.n_heads;
  shape.channels = 2 * shape.n_groups * shape.key_dim + inner;
  return shape;
}

Result<RecurrentConfig> read_shape(const ArchitectureKeys& keys, const MixerRule& rule,
                                   const ModelConfig& config) {
  if (rule.mixer != Mixer::ShortConvolution) return read_heads(keys, rule);
  return RecurrentConfig{.n_taps = TRY(read_taps(keys, "shortconv.l_cache")),
                         .channels = config.n_embd};
}

}  // namespace

Result<void> read_mixers(const ArchitectureKeys& keys, const Architecture& architecture,
                         ModelConfig& config) {
  const MixerRule& rule = architecture.mixers;
  if (rule.mixer == Mixer::Attention) return {};
  const std::vector<bool> recurrent = TRY(read_recurrent_layers(keys, rule, config));
  for (std::uint32_t layer = 0; layer < config.n_layers; ++layer) {
    LayerConfig& shape = config.layers[layer];
    const bool has_feed_forward = shape.n_ff > 0 || config.experts.in_layer(layer);
    if (rule.excludes_feed_forward && has_feed_forward && !recurrent[layer])
      return keys.unsupported(
          "{} and {} give layer {} attention and a feed-forward; this build computes {} "
          "with one of them in a layer",
          keys.key("attention.head_count_kv"), keys.key("feed_forward_length"), layer,
          architecture.name);
    if (!recurrent[layer]) continue;
    shape.mixer = rule.excludes_feed_forward && has_feed_forward ? Mixer::None : rule.mixer;
    shape.n_kv_heads = 0;
  }
  if (std::ranges::all_of(recurrent, [](bool is_recurrent) { return is_recurrent; }))
    return keys.unsupported(
        "no layer has attention by {}; this build needs one",
        keys.key(rule.attention_every > 0 ? kInterval : "attention.head_count_kv"));
  config.recurrent = TRY(read_shape(keys, rule, config));
  return {};
}

}  // namespace leasehold
