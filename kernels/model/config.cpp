#include "kernels/model/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "common/utf8.hpp"
#include "kernels/model/architecture.hpp"
#include "kernels/model/architecture_keys.hpp"
#include "kernels/model/display_name.hpp"
#include "kernels/model/expert_config.hpp"
#include "kernels/model/file_kind.hpp"
#include "kernels/model/layer_config.hpp"

namespace leasehold {
namespace {

// Limits far above any model of these architectures, and far below values whose products overflow
// 32 bits or whose buffers exhaust memory.
constexpr std::uint32_t kMaxLayers = 1024;
constexpr std::uint32_t kMaxVocab = 1u << 22;

constexpr const char* kLayerEmbedding = "embedding_length_per_layer_input";

/// Metadata that changes the result but is not implemented; ignoring it would give silently wrong
/// results.
constexpr UnsupportedKey kUnsupportedKeys[] = {
    {"attention.clamp_kqv", 0.0f},
    {"attention.max_alibi_bias", 0.0f},
    {"interleave_moe_layer_step", 1.0f},
};
/// The same, of architectures without has_shared_kv and without has_layer_embeddings.
constexpr UnsupportedKey kSharedKvKeys[] = {{kSharedLayers, 0.0f}};
constexpr UnsupportedKey kLayerEmbeddingKeys[] = {{kLayerEmbedding, 0.0f}};
/// The same, of architectures without has_latent_experts.
constexpr UnsupportedKey kLatentKeys[] = {{kLatentSize, 0.0f}};
constexpr const char* kAttentionSoftcap = "attn_logit_softcapping";
constexpr const char* kLogitSoftcap = "final_logit_softcapping";
/// The same for architectures without soft caps.
constexpr UnsupportedKey kSoftcapKeys[] = {{kAttentionSoftcap, 0.0f}, {kLogitSoftcap, 0.0f}};
/// The same for architectures without has_scales.
constexpr UnsupportedKey kScaleKeys[] = {
    {"attention.scale", 0.0f},
    {"embedding_scale", 1.0f},
    {"residual_scale", 1.0f},
};
constexpr const char* kLogitScale = "logit_scale";
constexpr UnsupportedKey kLogitScaleKeys[] = {{kLogitScale, 1.0f}};

/// The layers of the file, with those that are not computed.
std::uint32_t n_blocks(const ModelConfig& config) {
  return config.n_layers + config.n_skipped_layers;
}

/// The width of the heads of layers with a window, or of those without one.
std::uint32_t head_dim_of(const ModelConfig& config, bool has_window) {
  for (std::uint32_t layer = 0; layer < config.n_layers; ++layer)
    if (config.windows.limits(layer) == has_window) return config.layers[layer].head_dim;
  return config.head_dim;
}

Result<void> read_ropes(const GgufFile& file, const ArchitectureKeys& keys,
                        const Architecture& architecture, ModelConfig& config) {
  config.rope =
      TRY(read_rope(file, keys, head_dim_of(config, false), config.n_context, architecture));
  if (config.windows.width == 0) return {};
  RopeConfig of_windows =
      TRY(read_window_rope(keys, config.rope, head_dim_of(config, true), architecture.windows));
  if (architecture.windows.rotates_plainly || of_windows != config.rope)
    config.window_rope = std::move(of_windows);
  return {};
}

/// Reads the width of the embeddings that each layer has.
Result<void> read_layer_embedding(const ArchitectureKeys& keys, ModelConfig& config) {
  if (TRY(keys.get_or<std::uint32_t>(kLayerEmbedding, 0)) == 0) return {};
  config.n_layer_embd = TRY(keys.count(kLayerEmbedding, kMaxWidth / config.n_layers));
  return {};
}

/// Zero is accepted as "none", because some converters write it.
Result<void> reject_keys(const ArchitectureKeys& keys, std::span<const UnsupportedKey> rejected) {
  for (const UnsupportedKey& unsupported_key : rejected) {
    const float value = TRY(keys.number_or(unsupported_key.suffix, 0.0f));
    if (value != 0.0f && value != unsupported_key.neutral_value)
      return keys.unsupported("{} is {}; this build computes without it",
                              keys.key(unsupported_key.suffix), value);
  }
  return {};
}

Result<void> reject_unsupported_keys(const ArchitectureKeys& keys,
                                     const Architecture& architecture) {
  TRY(reject_keys(keys, kUnsupportedKeys));
  if (!architecture.has_scales) TRY(reject_keys(keys, kScaleKeys));
  if (!architecture.has_scales && !architecture.multiplies_logits)
    TRY(reject_keys(keys, kLogitScaleKeys));
  if (!architecture.has_shared_kv) TRY(reject_keys(keys, kSharedKvKeys));
  if (!architecture.has_layer_embeddings) TRY(reject_keys(keys, kLayerEmbeddingKeys));
  if (!architecture.has_latent_experts) TRY(reject_keys(keys, kLatentKeys));
  if (!architecture.softcaps.is_supported) TRY(reject_keys(keys, kSoftcapKeys));
  if (!TRY(keys.get_or<bool>("attention.causal", true)))
    return keys.unsupported("{} is false; this build supports causal attention only",
                            keys.key("attention.causal"));
  return {};
}

/// Reads the context length. A sliding window of all layers limits it, because only texts no longer
/// than the window are computed exactly.
Result<void> read_context(const ArchitectureKeys& keys, const Architecture& architecture,
                          ModelConfig& config) {
  const auto n_context = TRY(keys.count("context_length", kMaxContext));
  config.windows = TRY(read_windows(keys, architecture, config.n_layers, n_blocks(config)));
  const bool limits_context = !architecture.ignores_window && architecture.windows.full_every == 0;
  const auto window =
      !limits_context ? 0 : TRY(keys.get_or<std::uint32_t>("attention.sliding_window", 0));
  config.has_sliding_window = window != 0 && window < n_context;
  config.n_context = config.has_sliding_window ? window : n_context;
  return {};
}

/// Reads the widths of the feed-forwards. A list has an element for each block of the file; 0 marks
/// a layer without one. A model with experts in every layer needs no width.
Result<void> read_feed_forward(const GgufFile& file, const ArchitectureKeys& keys,
                               const Architecture& architecture, ModelConfig& config) {
  constexpr std::string_view kKey = "feed_forward_length";
  const bool may_lack = architecture.mixers.excludes_feed_forward;
  std::vector<std::uint32_t> widths(n_blocks(config), 0);
  if (keys.has(kKey) || !architecture.feed_forward.empty())
    widths = TRY(keys.counts(kKey, may_lack ? 0 : 1, kMaxWidth, n_blocks(config)));
  config.experts = TRY(read_experts(file, keys, architecture, config, std::ranges::max(widths)));
  if (may_lack && config.experts.n_experts > 0)
    for (std::uint32_t layer = 0; layer < config.n_layers; ++layer)
      config.experts.has_feed_forward.push_back(widths[layer] > 0);
  for (std::uint32_t layer = 0; layer < config.n_layers; ++layer) {
    config.layers[layer].n_ff = config.experts.replace_ff(layer) ? 0 : widths[layer];
    config.n_ff = std::max(config.n_ff, config.layers[layer].n_ff);
  }
  return {};
}

/// Reads how many layers at the end only propose tokens. block_count includes them.
Result<std::uint32_t> read_skipped_layers(const ArchitectureKeys& keys, std::uint32_t n_blocks) {
  constexpr std::string_view kKey = "nextn_predict_layers";
  const auto skipped = TRY(keys.get_or<std::uint32_t>(kKey, 0));
  if (skipped >= n_blocks)
    return keys.corrupt("{} is {} of {} layers", keys.key(kKey), skipped, n_blocks);
  return skipped;
}

/// A soft cap, or `fallback` if the file does not name it; 0 means none.
Result<float> read_softcap(const ArchitectureKeys& keys, std::string_view suffix, float fallback) {
  const auto cap = TRY(keys.get_or<float>(suffix, fallback));
  if (cap == 0.0f) return 0.0f;
  return keys.between(suffix, 1e-6f, 1e6f, cap);
}

Result<SoftcapConfig> read_softcaps(const ArchitectureKeys& keys,
                                    const Architecture& architecture) {
  const SoftcapRule& rule = architecture.softcaps;
  if (!rule.is_supported) return SoftcapConfig{};
  SoftcapConfig softcaps;
  softcaps.attention = TRY(read_softcap(keys, kAttentionSoftcap, rule.attention));
  softcaps.logits = TRY(read_softcap(keys, kLogitSoftcap, rule.logits));
  return softcaps;
}

/// The key of the norms' epsilon. Some files of Nemotron-H name it as that of layer normalisation.
std::string_view epsilon_key(const ArchitectureKeys& keys, const Architecture& architecture) {
  constexpr std::string_view kOfLayerNorm = "attention.layer_norm_epsilon";
  constexpr std::string_view kOfRmsNorm = "attention.layer_norm_rms_epsilon";
  const bool has_only_layer_norm = keys.has(kOfLayerNorm) && !keys.has(kOfRmsNorm);
  return architecture.centers_norms || has_only_layer_norm ? kOfLayerNorm : kOfRmsNorm;
}

/// Reads the scales and the epsilons of the norms.
///
/// A residual scale r multiplies what each attention and feed-forward adds to the residual.
/// Instead, the forward pass keeps the residual divided by r: the embeddings are scaled by 1/r
/// more, and the norms, which cancel any factor of the residual but for their epsilon, use
/// epsilon/r².
Result<void> read_scales(const ArchitectureKeys& keys, const Architecture& architecture,
                         ModelConfig& config) {
  const std::string_view kEpsilon = epsilon_key(keys, architecture);
  const auto epsilon = TRY(keys.get<float>(kEpsilon));
  config.head_epsilon = TRY(keys.between(kEpsilon, 0.0f, 1.0f, epsilon));
  config.rms_epsilon = config.head_epsilon;
  const bool has_wide_scores = config.n_layers == architecture.wide_score_layers;
  const std::uint32_t head_dim = architecture.has_latent_attention
                                     ? config.latent.unrotated_dim + config.rope.dim
                                     : config.head_dim;
  const std::uint32_t score_width = has_wide_scores ? config.n_embd / config.n_heads : head_dim;
  config.scales.attention =
      architecture.has_unscaled_scores ? 1.0f : 1.0f / std::sqrt(static_cast<float>(score_width));
  if (architecture.has_latent_attention)
    config.scales.attention *= TRY(adapt_magnitude(keys, config.rope));
  if (architecture.embeds_by_root_width)
    config.scales.embedding = std::sqrt(static_cast<float>(config.n_embd));
  if (architecture.multiplies_logits) {
    const auto scale = TRY(keys.get<float>(kLogitScale));
    config.scales.logits = TRY(keys.between(kLogitScale, 1e-6f, 1e6f, scale));
  }
  if (!architecture.has_scales) return {};
  const float residual = TRY(keys.scale_or("residual_scale", 1.0f));
  config.rms_epsilon /= residual * residual;
  config.scales.embedding = TRY(keys.scale_or("embedding_scale", 1.0f)) / residual;
  config.scales.attention = TRY(keys.scale_or("attention.scale", config.scales.attention));
  config.scales.logits = 1.0f / TRY(keys.scale_or(kLogitScale, 1.0f));
  return {};
}

std::unexpected<Error> unknown_architecture(const GgufFile& file, std::string_view name) {
  const std::string similar = nearest_architecture(name);
  return fail(Errc::UnsupportedModel,
              fmt::format("{}: the architecture is \"{}\"{}; this build computes {}", file.path(),
                          printable_excerpt(name),
                          similar.empty() ? "" : fmt::format(" (the nearest is {})", similar),
                          architecture_names()));
}

Result<std::uint32_t> read_vocabulary_size(const GgufFile& file, const ArchitectureKeys& keys) {
  const std::uint64_t n_rows = TRY(file.tensor("token_embd.weight"))->rows();
  const std::uint64_t n_tokens = TRY(file.length("tokenizer.ggml.tokens"));
  if (n_rows != n_tokens)
    return keys.corrupt("token_embd.weight has {} rows for {} tokens", n_rows, n_tokens);
  if (n_rows > kMaxVocab)
    return keys.unsupported("{} tokens; this build supports at most {}", n_rows, kMaxVocab);
  const auto n_vocab = static_cast<std::uint32_t>(n_rows);
  if (TRY(keys.get_or<std::uint32_t>("vocab_size", n_vocab)) != n_vocab)
    return keys.corrupt("{} is not {}, the rows of token_embd.weight", keys.key("vocab_size"),
                        n_vocab);
  return n_vocab;
}

Result<PoolingType> read_pooling_type(const ArchitectureKeys& keys) {
  constexpr std::string_view kKey = "pooling_type";
  const auto type = TRY(keys.get_or<std::uint32_t>(kKey, 0));
  if (type == static_cast<std::uint32_t>(PoolingType::Rank))
    return keys.unsupported(
        "{} is {}, rank: a model that scores pairs of texts; this build computes texts and "
        "embeddings, of the poolings last and mean",
        keys.key(kKey), type);
  if (type <= static_cast<std::uint32_t>(PoolingType::Rank)) return static_cast<PoolingType>(type);
  return keys.unsupported("{} is {}; this build knows the types 0 to 3", keys.key(kKey), type);
}

}  // namespace

std::vector<LayerConfig> uniform_layers(const ModelConfig& config) {
  std::vector<LayerConfig> layers;
  for (std::uint32_t i = 0; i < config.n_layers; ++i)
    layers.push_back({.n_kv_heads = config.n_kv_heads,
                      .head_dim = config.head_dim,
                      .n_ff = config.experts.replace_ff(i) ? 0 : config.n_ff,
                      .latent_dim = config.latent.rank});
  return layers;
}

std::string_view name(PoolingType type) {
  switch (type) {
    case PoolingType::None:
      return "none";
    case PoolingType::Mean:
      return "mean";
    case PoolingType::Cls:
      return "cls";
    case PoolingType::Last:
      return "last";
    case PoolingType::Rank:
      return "rank";
  }
  return "unknown";
}

Result<ModelConfig> read_config(const GgufFile& file) {
  TRY(check_is_model(file));
  ModelConfig config{};
  config.architecture = TRY(file.get<std::string>("general.architecture"));
  const Architecture* architecture = find_architecture(config.architecture);
  if (architecture == nullptr) return unknown_architecture(file, config.architecture);
  const ArchitectureKeys keys(file, architecture->name);
  config.name = read_display_name(file, architecture->name);
  const auto n_blocks = TRY(keys.count("block_count", kMaxLayers));
  config.n_skipped_layers = TRY(read_skipped_layers(keys, n_blocks));
  config.n_layers = n_blocks - config.n_skipped_layers;
  config.n_embd = TRY(keys.count("embedding_length", kMaxWidth));
  config.n_vocab = TRY(read_vocabulary_size(file, keys));
  config.layers.resize(config.n_layers);
  TRY(read_feed_forward(file, keys, *architecture, config));
  TRY(read_context(keys, *architecture, config));
  TRY(reject_unsupported_keys(keys, *architecture));
  TRY(read_attention(file, keys, *architecture, config));
  TRY(read_mixers(keys, *architecture, config));
  TRY(read_ropes(file, keys, *architecture, config));
  TRY(read_layer_embedding(keys, config));
  TRY(read_scales(keys, *architecture, config));
  config.softcaps = TRY(read_softcaps(keys, *architecture));
  config.activation = architecture->activation;
  config.norms_values = architecture->norms_values;
  config.centers_norms = architecture->centers_norms;
  config.is_parallel = architecture->is_parallel;
  config.gates_attention = architecture->gates_attention;
  config.tied_embeddings = file.find("output.weight") == nullptr;
  config.pooling_type = TRY(read_pooling_type(keys));
  return config;
}

}  // namespace leasehold
