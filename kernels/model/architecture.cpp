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

constexpr TensorSpec kFeedForward[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate.weight", TensorDim::Embedding, TensorDim::FeedForward},
    {"ffn_up.weight", TensorDim::Embedding, TensorDim::FeedForward},
    {"ffn_down.weight", TensorDim::FeedForward, TensorDim::Embedding},
};

constexpr TensorSpec kFusedFeedForward[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate.weight", TensorDim::Embedding, TensorDim::FeedForward, Presence::Required,
     "ffn_up.weight"},
    {"ffn_up.weight", TensorDim::Embedding, TensorDim::FeedForward, Presence::Required,
     "ffn_up.weight"},
    {"ffn_down.weight", TensorDim::FeedForward, TensorDim::Embedding},
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
    {.name = "glm4moe",
     .rope_style = RopeStyle::Halves,
     .attention = kGlm4MoeAttention,
     .feed_forward = kGlm4MoeFeedForward,
     .experts = kGlm4MoeExperts,
     .has_shared_expert = true,
     .normalize_expert_weights = true,
     .expert_gating = ExpertGating::Sigmoid},
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
