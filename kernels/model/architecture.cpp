#include "kernels/model/architecture.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <string>
#include <vector>

#include "common/cli/suggest.hpp"
#include "kernels/model/config.hpp"

namespace leasehold {
namespace {

// Tensors in the order in which the forward pass uses them, so that a layer is read sequentially.
constexpr TensorSpec kLlamaAttention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_q.bias", TensorDim::Query, TensorDim::One, Presence::Optional},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_k.bias", TensorDim::KeyValue, TensorDim::One, Presence::Optional},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_v.bias", TensorDim::KeyValue, TensorDim::One, Presence::Optional},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
    {"attn_output.bias", TensorDim::Embedding, TensorDim::One, Presence::Optional},
};

constexpr TensorSpec kQwen2Attention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_q.bias", TensorDim::Query, TensorDim::One},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_k.bias", TensorDim::KeyValue, TensorDim::One},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_v.bias", TensorDim::KeyValue, TensorDim::One},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
};

constexpr TensorSpec kQwen3Attention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_q_norm.weight", TensorDim::Head, TensorDim::One},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_k_norm.weight", TensorDim::Head, TensorDim::One},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
};

constexpr TensorSpec kPhi3Attention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query, Presence::Required,
     "attn_qkv.weight"},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue, Presence::Required,
     "attn_qkv.weight"},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue, Presence::Required,
     "attn_qkv.weight"},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
};

constexpr TensorSpec kGlm4MoeAttention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_q.bias", TensorDim::Query, TensorDim::One, Presence::Optional},
    {"attn_q_norm.weight", TensorDim::Head, TensorDim::One, Presence::Optional},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_k.bias", TensorDim::KeyValue, TensorDim::One, Presence::Optional},
    {"attn_k_norm.weight", TensorDim::Head, TensorDim::One, Presence::Optional},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_v.bias", TensorDim::KeyValue, TensorDim::One, Presence::Optional},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
};

constexpr TensorSpec kGlm4Attention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_q.bias", TensorDim::Query, TensorDim::One, Presence::Optional},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_k.bias", TensorDim::KeyValue, TensorDim::One, Presence::Optional},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_v.bias", TensorDim::KeyValue, TensorDim::One, Presence::Optional},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
    {"post_attention_norm.weight", TensorDim::Embedding, TensorDim::One},
};

// The norms of queries and keys cover all heads together.
constexpr TensorSpec kMiniMaxAttention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_q_norm.weight", TensorDim::Query, TensorDim::One},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_k_norm.weight", TensorDim::KeyValue, TensorDim::One},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
};

constexpr TensorSpec kGemma2Attention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
    {"post_attention_norm.weight", TensorDim::Embedding, TensorDim::One},
};

constexpr TensorSpec kGemma3Attention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_q_norm.weight", TensorDim::Head, TensorDim::One},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_k_norm.weight", TensorDim::Head, TensorDim::One},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
    {"post_attention_norm.weight", TensorDim::Embedding, TensorDim::One},
};

// No norms before attention and feed-forward; those of queries and keys cover all heads together.
constexpr TensorSpec kOlmo2Attention[] = {
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_q_norm.weight", TensorDim::Query, TensorDim::One},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_k_norm.weight", TensorDim::KeyValue, TensorDim::One},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
    {"post_attention_norm.weight", TensorDim::Embedding, TensorDim::One},
};

constexpr TensorSpec kGptOssAttention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_q.bias", TensorDim::Query, TensorDim::One},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_k.bias", TensorDim::KeyValue, TensorDim::One},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_v.bias", TensorDim::KeyValue, TensorDim::One},
    {"attn_sinks.weight", TensorDim::Heads, TensorDim::One},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
    {"attn_output.bias", TensorDim::Embedding, TensorDim::One},
};

constexpr TensorSpec kFeedForward[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate.weight", TensorDim::Embedding, TensorDim::FeedForward},
    {"ffn_up.weight", TensorDim::Embedding, TensorDim::FeedForward},
    {"ffn_down.weight", TensorDim::FeedForward, TensorDim::Embedding},
};

constexpr TensorSpec kGlm4FeedForward[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate.weight", TensorDim::Embedding, TensorDim::FeedForward, Presence::Required,
     "ffn_up.weight"},
    {"ffn_up.weight", TensorDim::Embedding, TensorDim::FeedForward, Presence::Required,
     "ffn_up.weight"},
    {"ffn_down.weight", TensorDim::FeedForward, TensorDim::Embedding},
    {"post_ffw_norm.weight", TensorDim::Embedding, TensorDim::One},
};
constexpr auto kFusedFeedForward = std::span(kGlm4FeedForward).first<4>();

constexpr TensorSpec kGemmaFeedForward[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate.weight", TensorDim::Embedding, TensorDim::FeedForward},
    {"ffn_up.weight", TensorDim::Embedding, TensorDim::FeedForward},
    {"ffn_down.weight", TensorDim::FeedForward, TensorDim::Embedding},
    {"post_ffw_norm.weight", TensorDim::Embedding, TensorDim::One},
};
constexpr auto kOlmo2FeedForward = std::span(kGemmaFeedForward).last<4>();

// The norm before the experts has the name of a norm after attention. A bias has one row per
// expert.
constexpr TensorSpec kGptOssExperts[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One, Presence::Required,
     "post_attention_norm.weight"},
    {"ffn_gate_inp.weight", TensorDim::Embedding, TensorDim::Experts},
    {"ffn_gate_inp.bias", TensorDim::Experts, TensorDim::One},
    {"ffn_gate_exps.weight", TensorDim::Embedding, TensorDim::ExpertFeedForward,
     Presence::PerExpert},
    {"ffn_gate_exps.bias", TensorDim::ExpertFeedForward, TensorDim::One, Presence::PerExpert},
    {"ffn_up_exps.weight", TensorDim::Embedding, TensorDim::ExpertFeedForward, Presence::PerExpert},
    {"ffn_up_exps.bias", TensorDim::ExpertFeedForward, TensorDim::One, Presence::PerExpert},
    {"ffn_down_exps.weight", TensorDim::ExpertFeedForward, TensorDim::Embedding,
     Presence::PerExpert},
    {"ffn_down_exps.bias", TensorDim::Embedding, TensorDim::One, Presence::PerExpert},
};

constexpr TensorSpec kExpertsAndShared[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate_inp.weight", TensorDim::Embedding, TensorDim::Experts},
    {"ffn_gate_exps.weight", TensorDim::Embedding, TensorDim::ExpertFeedForward,
     Presence::PerExpert, "ffn_gate_up_exps.weight"},
    {"ffn_up_exps.weight", TensorDim::Embedding, TensorDim::ExpertFeedForward, Presence::PerExpert,
     "ffn_gate_up_exps.weight"},
    {"ffn_down_exps.weight", TensorDim::ExpertFeedForward, TensorDim::Embedding,
     Presence::PerExpert},
    {"ffn_gate_inp_shexp.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate_shexp.weight", TensorDim::Embedding, TensorDim::SharedFeedForward},
    {"ffn_up_shexp.weight", TensorDim::Embedding, TensorDim::SharedFeedForward},
    {"ffn_down_shexp.weight", TensorDim::SharedFeedForward, TensorDim::Embedding},
};
// The tensors of the experts, without the four of the shared expert.
constexpr auto kExperts = std::span(kExpertsAndShared).first<5>();

constexpr TensorSpec kBiasedExpertsAndShared[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate_inp.weight", TensorDim::Embedding, TensorDim::Experts},
    {"exp_probs_b.bias", TensorDim::Experts, TensorDim::One, Presence::Optional},
    {"ffn_gate_exps.weight", TensorDim::Embedding, TensorDim::ExpertFeedForward,
     Presence::PerExpert, "ffn_gate_up_exps.weight"},
    {"ffn_up_exps.weight", TensorDim::Embedding, TensorDim::ExpertFeedForward, Presence::PerExpert,
     "ffn_gate_up_exps.weight"},
    {"ffn_down_exps.weight", TensorDim::ExpertFeedForward, TensorDim::Embedding,
     Presence::PerExpert},
    {"ffn_gate_shexp.weight", TensorDim::Embedding, TensorDim::SharedFeedForward},
    {"ffn_up_shexp.weight", TensorDim::Embedding, TensorDim::SharedFeedForward},
    {"ffn_down_shexp.weight", TensorDim::SharedFeedForward, TensorDim::Embedding},
};

// The tensors of the experts, without the three of the shared expert.
constexpr auto kBiasedExperts = std::span(kBiasedExpertsAndShared).first<6>();

/// The same tensors in files where the first one, the norm before the feed-forward, has the name of
/// a norm after attention.
template <std::size_t kCount>
constexpr std::array<TensorSpec, kCount> after_attention(const TensorSpec (&specs)[kCount]) {
  std::array<TensorSpec, kCount> named = std::to_array(specs);
  named[0].fused = "post_attention_norm.weight";
  return named;
}
constexpr auto kGlm4MoeFeedForward = after_attention(kFeedForward);
constexpr auto kGlm4MoeExperts = after_attention(kBiasedExpertsAndShared);

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
     .experts = kBiasedExpertsAndShared,
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
     .normalize_expert_weights = true,
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
     .windows = {.full_every = 2},
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
};

}  // namespace

std::uint32_t dimension(TensorDim dim, const ModelConfig& config) {
  switch (dim) {
    case TensorDim::One:
      return 1;
    case TensorDim::Embedding:
      return config.n_embd;
    case TensorDim::Query:
      return config.n_heads * config.head_dim;
    case TensorDim::KeyValue:
      return config.n_kv_heads * config.head_dim;
    case TensorDim::Head:
      return config.head_dim;
    case TensorDim::Heads:
      return config.n_heads;
    case TensorDim::FeedForward:
      return config.n_ff;
    case TensorDim::Experts:
      return config.experts.n_experts;
    case TensorDim::ExpertFeedForward:
      return config.experts.n_ff;
    case TensorDim::SharedFeedForward:
      return config.experts.n_shared_ff;
    case TensorDim::Vocabulary:
      return config.n_vocab;
  }
  return 0;
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
