#include "kernels/model/architecture.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <string>
#include <vector>

#include "common/cli/suggest.hpp"
#include "kernels/model/architecture_tensors.hpp"
#include "kernels/model/config.hpp"

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
    .gates_attention = true};
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

/// An architecture that computes like another one.
constexpr Architecture renamed(Architecture architecture, std::string_view name) {
  architecture.name = name;
  return architecture;
}

// GGUF converters permute the query and key rows of some architectures, llama among them, so that
// rotated pairs are neighbours. Rows of the others keep their trained order.
constexpr Architecture kArchitectures[] = {
    {.name = "llama",
     .rope_style = RopeStyle::Interleaved,
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
    renamed(kQwen3, "qwen3vl"),
    renamed(kQwen3Moe, "qwen3vlmoe"),
    {.name = "mistral3",
     .rope_style = RopeStyle::Interleaved,
     .attention = kLlamaAttention,
     .feed_forward = kFeedForward,
     .experts = {}},
    {.name = "phi3",
     .rope_style = RopeStyle::Halves,
     .attention = kPhi3Attention,
     .feed_forward = kFusedFeedForward,
     .experts = {},
     .ignores_window = true},
    {.name = "smollm3",
     .rope_style = RopeStyle::Interleaved,
     .attention = kLlamaAttention,
     .feed_forward = kFeedForward,
     .experts = {},
     .unrotated_layer_every = 4},
    {.name = "granite",
     .rope_style = RopeStyle::Interleaved,
     .attention = kLlamaAttention,
     .feed_forward = kFeedForward,
     .experts = {},
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
     .experts = kErnie45Experts,
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
    {.name = "olmo2",
     .rope_style = RopeStyle::Halves,
     .attention = kOlmo2Attention,
     .feed_forward = kOlmo2FeedForward,
     .experts = {},
     .windows = {.full_every = 4, .rotates_plainly = true}},
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
     .attention = kLlamaAttention,
     .feed_forward = kFeedForward,
     .experts = kErnie45Experts,
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
      return shape.n_kv_heads * shape.head_dim;
    case TensorDim::Head:
      return shape.head_dim;
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

std::span<const TensorSpec> mixer_tensors(const Architecture& architecture, Mixer mixer) {
  if (mixer == Mixer::None) return {};
  return mixer == Mixer::Attention ? architecture.attention : architecture.recurrent;
}

std::span<const TensorSpec> feed_forward_tensors(const Architecture& architecture,
                                                 const ModelConfig& config, std::uint32_t layer) {
  if (config.experts.in_layer(layer)) return architecture.experts;
  const bool has_one = config.layers[layer].n_ff > 0;
  return has_one ? architecture.feed_forward : std::span<const TensorSpec>();
}

const Architecture* find_architecture(std::string_view name) {
  const auto* found = std::ranges::find(kArchitectures, name, &Architecture::name);
  return found == std::end(kArchitectures) ? nullptr : found;
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
