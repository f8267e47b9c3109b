#include "kernels/model/layer_config.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "kernels/model/architecture.hpp"
#include "kernels/model/architecture_keys.hpp"
#include "kernels/model/config.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kMaxHeads = 1024;
constexpr std::uint32_t kMaxHeadDim = 1024;

/// Reads the kv heads of each layer: 0 in a list marks a layer without attention. A list has an
/// element for each block of the file.
Result<void> read_kv_heads(const ArchitectureKeys& keys, const Architecture& architecture,
                           ModelConfig& config) {
  constexpr std::string_view kKey = "attention.head_count_kv";
  const MixerRule& rule = architecture.mixers;
  const bool may_lack = rule.mixer != Mixer::Attention && rule.attention_every == 0;
  std::vector<std::uint32_t> counts(config.n_layers, config.n_heads);
  if (keys.has(kKey))
    counts = TRY(
        keys.counts(kKey, may_lack ? 0 : 1, kMaxHeads, config.n_layers + config.n_skipped_layers));
  for (std::uint32_t layer = 0; layer < config.n_layers; ++layer) {
    if (counts[layer] > 0 && config.n_heads % counts[layer] != 0)
      return keys.corrupt("{} is {}, which {} heads cannot share evenly", keys.key(kKey),
                          counts[layer], config.n_heads);
    config.layers[layer].n_kv_heads = counts[layer];
    config.n_kv_heads = std::max(config.n_kv_heads, counts[layer]);
  }
  return {};
}

/// Reads the width of heads, which may differ between layers with and without a window.
Result<void> read_window_heads(const ArchitectureKeys& keys, ModelConfig& config) {
  constexpr std::string_view kKeys = "attention.key_length_swa";
  constexpr std::string_view kValues = "attention.value_length_swa";
  const std::uint32_t of_others = config.head_dim;
  const auto head_dim = TRY(keys.count_or(kKeys, kMaxHeadDim, of_others));
  const auto value_dim = TRY(keys.count_or(kValues, kMaxHeadDim, head_dim));
  if (value_dim != head_dim)
    return keys.unsupported("{} is {} and {} is {}; this build needs them equal", keys.key(kKeys),
                            head_dim, keys.key(kValues), value_dim);
  for (std::uint32_t layer = 0; layer < config.n_layers; ++layer) {
    LayerConfig& shape = config.layers[layer];
    shape.head_dim = config.windows.limits(layer) ? head_dim : of_others;
    config.head_dim = std::max(config.head_dim, shape.head_dim);
  }
  return {};
}

/// Reads which layers at the end share keys and values. A layer with a window reads those of the
/// last but one layer before them, the others those of the last one.
Result<void> read_shared_kv(const ArchitectureKeys& keys, ModelConfig& config) {
  const auto shared = TRY(keys.get_or<std::uint32_t>(kSharedLayers, 0));
  if (shared == 0) return {};
  if (shared > config.n_layers || config.n_layers - shared < 2)
    return keys.corrupt("{} is {} of {} layers; at least two must store keys and values",
                        keys.key(kSharedLayers), shared, config.n_layers);
  const std::uint32_t first = config.n_layers - shared;
  for (std::uint32_t layer = first; layer < config.n_layers; ++layer) {
    const bool has_window = config.windows.limits(layer);
    const std::uint32_t source = first - (has_window ? 2 : 1);
    LayerConfig& shape = config.layers[layer];
    if (config.windows.limits(source) != has_window ||
        config.layers[source].n_kv_heads != shape.n_kv_heads)
      return keys.corrupt(
          "{} is {}, so layer {} reads keys and values of layer {}, but one of them has a window "
          "or more kv heads",
          keys.key(kSharedLayers), shared, layer, source);
    shape.kv_distance = layer - source;
  }
  return {};
}

/// Reads the shape of latent keys, which is the same in every layer.
Result<void> read_latent_heads(const GgufFile& file, const ArchitectureKeys& keys,
                               ModelConfig& config) {
  config.latent = TRY(read_latent(file, keys));
  config.n_kv_heads = 1;
  config.head_dim = config.latent.rank + TRY(read_rotated_dim(keys));
  if (config.head_dim > kMaxHeadDim)
    return keys.unsupported("{} and {} make keys of {}; this build supports at most {}",
                            keys.key("attention.kv_lora_rank"), keys.key("rope.dimension_count"),
                            config.head_dim, kMaxHeadDim);
  for (LayerConfig& layer : config.layers) {
    layer.n_kv_heads = config.n_kv_heads;
    layer.head_dim = config.head_dim;
    layer.latent_dim = config.latent.rank;
  }
  return {};
}

}  // namespace

Result<void> read_attention(const GgufFile& file, const ArchitectureKeys& keys,
                            const Architecture& architecture, ModelConfig& config) {
  config.n_heads = TRY(keys.count("attention.head_count", kMaxHeads));
  if (architecture.has_latent_attention) return read_latent_heads(file, keys, config);
  TRY(read_kv_heads(keys, architecture, config));
  const bool has_head_dim = keys.has("attention.key_length");
  if (!has_head_dim && config.n_embd % config.n_heads != 0)
    return keys.corrupt("{} is {}, which does not divide into {} heads",
                        keys.key("embedding_length"), config.n_embd, config.n_heads);
  const std::uint32_t default_head_dim = config.n_embd / config.n_heads;
  config.head_dim = TRY(keys.count_or("attention.key_length", kMaxHeadDim, default_head_dim));
  if (config.head_dim > kMaxHeadDim)
    return keys.unsupported("heads are {} wide; this build supports at most {}", config.head_dim,
                            kMaxHeadDim);
  const auto value_dim = TRY(keys.count_or("attention.value_length", kMaxHeadDim, config.head_dim));
  if (value_dim != config.head_dim)
    return keys.unsupported("{} is {} and {} is {}; this build needs them equal",
                            keys.key("attention.key_length"), config.head_dim,
                            keys.key("attention.value_length"), value_dim);
  TRY(read_window_heads(keys, config));
  return read_shared_kv(keys, config);
}

}  // namespace leasehold
