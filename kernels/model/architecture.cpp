#include "kernels/model/architecture.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <string>
#include <vector>

#include "common/cli/suggest.hpp"
#include "kernels/model/architecture_tensors.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/recurrent_tensors.hpp"

namespace leasehold {
namespace {

constexpr Architecture kQwen35{
    .name = "qwen35",
    .rope_style = RopeStyle::Halves,
    .attention = kQwen35Attention,
    .feed_forward = kGlm4MoeFeedForward,
    .experts = {},
    .recurrent = kQwen35Recurrent,
    .mixers = {.mixer = Mixer::DeltaNet, .attention_every = 4, .alternates_groups = true},
    .gates_attention = true,
    .has_rope_sections = true};
constexpr Architecture kQwen35Moe = [] {
  Architecture moe = kQwen35;
  moe.name = "qwen35moe";
  moe.feed_forward = {};
  moe.experts = kQwen35Experts;
  moe.has_shared_expert = true;
  moe.normalize_expert_weights = true;
  return moe;
}();
/// Value heads of the same key head are neighbours.
constexpr Architecture kQwen3Next = [] {
  Architecture next = kQwen35Moe;
  next.name = "qwen3next";
  next.recurrent = kQwen3NextRecurrent;
  next.mixers.alternates_groups = false;
  return next;
}();

constexpr Architecture kNemotronH{.name = "nemotron_h",
                                  .rope_style = RopeStyle::Interleaved,
                                  .attention = kLlamaAttention,
                                  .feed_forward = kNemotronFeedForward,
                                  .experts = {},
                                  .recurrent = kMamba2Recurrent,
                                  .mixers = {.mixer = Mixer::Mamba2, .excludes_feed_forward = true},
                                  .unrotated_layer_every = 1,
                                  .activation = Activation::ReGlu};
constexpr Architecture kNemotronHMoe = [] {
  Architecture moe = kNemotronH;
  moe.name = "nemotron_h_moe";
  moe.experts = kNemotronExperts;
  moe.has_shared_expert = true;
  moe.reads_expert_weights_norm = true;
  moe.expert_gating = ExpertGating::Sigmoid;
  moe.has_latent_experts = true;
  return moe;
}();

constexpr Architecture kQwen3{.name = "qwen3",
                              .rope_style = RopeStyle::Halves,
                              .attention = kQwen3Attention,
                              .feed_forward = kFeedForward,
                              .experts = {}};
constexpr Architecture kQwen3Moe{.name = "qwen3moe",
                                 .rope_style = RopeStyle::Halves,
                                 .attention = kQwen3Attention,
                                 .feed_forward = {},
                                 .experts = kExperts,
                                 .normalize_expert_weights = true};

/// A text model's architecture in files for a model that also reads images.
constexpr Architecture with_images(Architecture architecture, std::string_view name) {
  architecture.name = name;
  architecture.has_rope_sections = true;
  return architecture;
}

constexpr Architecture kArchitectures[] = {
    {.name = "llama",
     .rope_style = RopeStyle::Interleaved,
     .permutes_heads = true,
     .attention = kLlamaAttention,
     .feed_forward = kFeedForward,
     .experts = kExperts,
     .normalize_expert_weights = true},
    {.name = "qwen2",
     .rope_style = RopeStyle::Halves,
     .attention = kQwen2Attention,
     .feed_forward = kFeedForward,
     .experts = {}},
    kQwen3,
    {.name = "qwen2moe",
     .rope_style = RopeStyle::Halves,
     .attention = kQwen2Attention,
     .feed_forward = {},
     .experts = kExpertsAndShared,
     .has_shared_expert = true},
    kQwen3Moe,
    // The language models of Qwen3-VL; images are another file.
    with_images(kQwen3, "qwen3vl"),
    with_images(kQwen3Moe, "qwen3vlmoe"),
    {.name = "mistral3",
     .rope_style = RopeStyle::Interleaved,
     .permutes_heads = true,
     .attention = kLlamaAttention,
     .feed_forward = kFeedForward,
     .experts = {}},
    {.name = "phi3",
     .rope_style = RopeStyle::Halves,
     .attention = kPlainAttention,
     .feed_forward = kFusedFeedForward,
     .experts = {},
     .ignores_window = true},
    {.name = "smollm3",
     .rope_style = RopeStyle::Interleaved,
     .permutes_heads = true,
     .attention = kLlamaAttention,
     .feed_forward = kFeedForward,
     .experts = {},
     .unrotated_layer_every = 4},
    {.name = "granite",
     .rope_style = RopeStyle::Interleaved,
     .permutes_heads = true,
     .attention = kLlamaAttention,
     .feed_forward = kFeedForward,
     .experts = {},
     .reads_rope_finetuned = true,
     .has_scales = true},
    {.name = "ernie4_5",
     .rope_style = RopeStyle::Interleaved,
     .attention = kLlamaAttention,
     .feed_forward = kFeedForward,
     .experts = {}},
    {.name = "ernie4_5-moe",
     .rope_style = RopeStyle::Interleaved,
     .attention = kLlamaAttention,
     .feed_forward = kFeedForward,
     .experts = kOptionallyBiasedExperts,
     .has_shared_expert = true,
     .normalize_expert_weights = true},
    {.name = "glm4",
     .rope_style = RopeStyle::Interleaved,
     .attention = kGlm4Attention,
     .feed_forward = kGlm4FeedForward,
     .experts = {}},
    {.name = "glm4moe",
     .rope_style = RopeStyle::Halves,
     .attention = kGlm4MoeAttention,
     .feed_forward = kGlm4MoeFeedForward,
     .experts = kGlm4MoeExperts,
     .has_shared_expert = true,
     .reads_expert_weights_norm = true,
     .expert_gating = ExpertGating::Sigmoid},
    {.name = "minimax-m2",
     .rope_style = RopeStyle::Halves,
     .attention = kMiniMaxAttention,
     .feed_forward = {},
     .experts = kBiasedExperts,
     .normalize_expert_weights = true,
     .expert_gating = ExpertGating::Sigmoid},
    {.name = "deepseek2",
     .rope_style = RopeStyle::Interleaved,
     .attention = kLatentAttention,
     .feed_forward = kFeedForward,
     .experts = kOptionallyBiasedExperts,
     .has_shared_expert = true,
     .reads_expert_weights_norm = true,
     .reads_expert_gating = true,
     .sigmoid_models = {.n_vocab = 154880, .least_layers = 47, .most_layers = 48},  // GLM-4.7-Flash
     .has_latent_attention = true},
    {.name = "gemma2",
     .rope_style = RopeStyle::Halves,
     .attention = kGemma2Attention,
     .feed_forward = kGemmaFeedForward,
     .experts = {},
     .windows = {.full_every = 2, .width = 4096},
     .softcaps = {.is_supported = true, .attention = 50.0f, .logits = 30.0f},
     .activation = Activation::GeGlu,
     .embeds_by_root_width = true,
     .wide_score_layers = 46},  // Gemma 2 27B
    {.name = "gemma3",
     .rope_style = RopeStyle::Halves,
     .attention = kGemma3Attention,
     .feed_forward = kGemmaFeedForward,
     .experts = {},
     .windows = {.full_every = 6, .rotates_plainly = true, .freq_base = 10000.0f},
     .softcaps = {.is_supported = true},
     .activation = Activation::GeGlu,
     .embeds_by_root_width = true,
     .wide_score_layers = 62},  // Gemma 3 27B
    {.name = "gemma4",
     .rope_style = RopeStyle::Halves,
     .attention = kGemma4Attention,
     .feed_forward = kGemma4FeedForward,
     .experts = kGemma4Experts,
     .has_experts_beside = true,
     .normalize_expert_weights = true,
     .windows = {.full_every = 6,
                 .rotates_plainly = true,
                 .freq_base = 10000.0f,
                 .needs_width = true,
                 .needs_pattern = true},
     .softcaps = {.is_supported = true},
     .activation = Activation::GeGlu,
     .embeds_by_root_width = true,
     .needs_rope_factors = true,
     .has_unscaled_scores = true,
     .norms_values = true,
     .has_shared_kv = true,
     .has_layer_embeddings = true},
    {.name = "olmo2",
     .rope_style = RopeStyle::Halves,
     .attention = kOlmo2Attention,
     .feed_forward = kOlmo2FeedForward,
     .experts = {},
     .windows = {.full_every = 4, .rotates_plainly = true}},
    {.name = "cohere2",
     .rope_style = RopeStyle::Interleaved,
     .attention = kPlainAttention,
     .feed_forward = kCohere2FeedForward,
     .experts = {},
     .windows = {.full_every = 4, .needs_width = true, .rotates_others = false},
     .centers_norms = true,
     .is_parallel = true,
     .multiplies_logits = true},
    {.name = "gpt-oss",
     .rope_style = RopeStyle::Halves,
     .attention = kGptOssAttention,
     .feed_forward = {},
     .experts = kGptOssExperts,
     .normalize_expert_weights = true,
     .windows = {.full_every = 2},
     .activation = Activation::ClampedSwiGlu},
    kQwen35,
    kQwen35Moe,
    kQwen3Next,
    {.name = "lfm2",
     .rope_style = RopeStyle::Halves,
     .attention = kQwen3Attention,
     .feed_forward = kFeedForward,
     .experts = {},
     .recurrent = kLfm2Recurrent,
     .mixers = {.mixer = Mixer::ShortConvolution},
     .output_norm = "token_embd_norm.weight"},
    {.name = "lfm2moe",
     .rope_style = RopeStyle::Halves,
     .attention = kQwen3Attention,
     .feed_forward = kFeedForward,
     .experts = kBiasedExperts,
     .recurrent = kLfm2Recurrent,
     .mixers = {.mixer = Mixer::ShortConvolution},
     .output_norm = "token_embd_norm.weight",
     .normalize_expert_weights = true,
     .expert_gating = ExpertGating::Sigmoid},
    {.name = "granitehybrid",
     .rope_style = RopeStyle::Interleaved,
     .permutes_heads = true,
     .attention = kLlamaAttention,
     .feed_forward = kFeedForward,
     .experts = kOptionallyBiasedExperts,
     .recurrent = kMamba2Recurrent,
     .mixers = {.mixer = Mixer::Mamba2},
     .has_shared_expert = true,
     .normalize_expert_weights = true,
     .reads_rope_finetuned = true,
     .has_scales = true},
    kNemotronH,
    kNemotronHMoe,
};

}  // namespace

std::uint32_t dimension(TensorDim dim, const ModelConfig& config, std::uint32_t layer) {
  const LayerConfig& shape = config.layers[layer];
  const RecurrentConfig& recurrent = config.recurrent;
  switch (dim) {
    case TensorDim::One:
      return 1;
    case TensorDim::Embedding:
      return config.n_embd;
    case TensorDim::Query:
      return config.n_heads * shape.head_dim;
    case TensorDim::KeyValue:
      return shape.stores_kv() ? shape.n_kv_heads * shape.head_dim : 0;
    case TensorDim::Head:
      return shape.head_dim;
    case TensorDim::StoredHead:
      return shape.stores_kv() ? shape.head_dim : 0;
    case TensorDim::Heads:
      return config.n_heads;
    case TensorDim::FeedForward:
      return shape.n_ff;
    case TensorDim::Experts:
      return config.experts.n_experts;
    case TensorDim::ExpertFeedForward:
      return config.experts.n_ff;
    case TensorDim::SharedFeedForward:
      return config.experts.n_shared_ff;
    case TensorDim::Vocabulary:
      return config.n_vocab;
    case TensorDim::QueryRank:
      return config.latent.query_rank;
    case TensorDim::DirectQuery:
      return config.latent.query_rank == 0 ? config.n_embd : 0;
    case TensorDim::UnrotatedHead:
      return config.latent.unrotated_dim;
    case TensorDim::RotatedHead:
      return config.rope.dim;
    case TensorDim::LatentRank:
      return config.latent.rank;
    case TensorDim::LatentValue:
      return config.latent.value_dim;
    case TensorDim::AttentionOutput:
      return attention_width(config);
    case TensorDim::LayerEmbedding:
      return config.n_layer_embd;
    case TensorDim::LayerEmbeddings:
      return config.n_layers * config.n_layer_embd;
    case TensorDim::LayerEmbeddingOutput:
      return config.n_layer_embd > 0 ? config.n_embd : 0;
    case TensorDim::Taps:
      return recurrent.n_taps;
    case TensorDim::Channels:
      return recurrent.channels;
    case TensorDim::RecurrentHeads:
      return recurrent.n_heads;
    case TensorDim::RecurrentGroups:
      return recurrent.n_groups;
    case TensorDim::GroupHeads:
      return recurrent.n_heads / recurrent.n_groups;
    case TensorDim::RecurrentKey:
      return recurrent.key_dim;
    case TensorDim::RecurrentValue:
      return recurrent.head_dim;
    case TensorDim::RecurrentValues:
      return recurrent.n_values();
    case TensorDim::GroupValues:
      return recurrent.n_values() / recurrent.n_groups;
    case TensorDim::LatentExpert:
      return config.experts.n_latent;
    case TensorDim::ExpertEmbedding:
      return config.experts.n_latent > 0 ? config.experts.n_latent : config.n_embd;
  }
  return 0;
}

std::uint32_t matrix_count(const TensorSpec& spec, const ModelConfig& config) {
  switch (spec.presence) {
    case Presence::PerExpert:
      return config.experts.n_experts;
    case Presence::PerHead:
      return config.n_heads;
    case Presence::Required:
    case Presence::Optional:
      return 1;
  }
  return 1;
}

std::span<const TensorSpec> mixer_tensors(const Architecture& architecture, Mixer mixer) {
  if (mixer == Mixer::None) return {};
  return mixer == Mixer::Attention ? architecture.attention : architecture.recurrent;
}

const Architecture* find_architecture(std::string_view name) {
  const auto* found = std::ranges::find(kArchitectures, name, &Architecture::name);
  return found == std::end(kArchitectures) ? nullptr : found;
}

std::span<const Architecture> architectures() {
  return kArchitectures;
}

std::string architecture_names() {
  return fmt::format("{}",
                     fmt::join(kArchitectures | std::views::transform(&Architecture::name), ", "));
}

std::string nearest_architecture(std::string_view name) {
  constexpr std::size_t kLongestName = 64;  // the comparison takes quadratic time
  if (name.size() > kLongestName) return "";
  std::vector<std::string> names;
  for (const Architecture& architecture : kArchitectures) names.emplace_back(architecture.name);
  return nearest(name, names);
}

}  // namespace leasehold
