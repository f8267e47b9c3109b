#include "kernels/model/architecture.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

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

constexpr TensorSpec kFeedForward[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate.weight", TensorDim::Embedding, TensorDim::FeedForward},
    {"ffn_up.weight", TensorDim::Embedding, TensorDim::FeedForward},
    {"ffn_down.weight", TensorDim::FeedForward, TensorDim::Embedding},
};

constexpr TensorSpec kExpertsAndShared[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate_inp.weight", TensorDim::Embedding, TensorDim::Experts},
    {"ffn_gate_exps.weight", TensorDim::Embedding, TensorDim::ExpertFeedForward,
     Presence::PerExpert},
    {"ffn_up_exps.weight", TensorDim::Embedding, TensorDim::ExpertFeedForward, Presence::PerExpert},
    {"ffn_down_exps.weight", TensorDim::ExpertFeedForward, TensorDim::Embedding,
     Presence::PerExpert},
    {"ffn_gate_inp_shexp.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate_shexp.weight", TensorDim::Embedding, TensorDim::FeedForward},
    {"ffn_up_shexp.weight", TensorDim::Embedding, TensorDim::FeedForward},
    {"ffn_down_shexp.weight", TensorDim::FeedForward, TensorDim::Embedding},
};
// The tensors of the experts, without the four of the shared expert.
constexpr auto kExperts = std::span(kExpertsAndShared).first<5>();

// GGUF converters permute llama's query and key rows so that rotated pairs are neighbours. Rows of
// the other architectures keep their trained order.
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
    {.name = "qwen3",
     .rope_style = RopeStyle::Halves,
     .attention = kQwen3Attention,
     .feed_forward = kFeedForward,
     .experts = {}},
    {.name = "qwen2moe",
     .rope_style = RopeStyle::Halves,
     .attention = kQwen2Attention,
     .feed_forward = {},
     .experts = kExpertsAndShared,
     .has_shared_expert = true},
    {.name = "qwen3moe",
     .rope_style = RopeStyle::Halves,
     .attention = kQwen3Attention,
     .feed_forward = {},
     .experts = kExperts,
     .normalize_expert_weights = true},
};

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  const auto* found = std::ranges::find(kArchitectures, name, &Architecture::name);
  return found == std::end(kArchitectures) ? nullptr : found;
}

std::string architecture_names() {
  return fmt::format("{}",
                     fmt::join(kArchitectures | std::views::transform(&Architecture::name), ", "));
}

}  // namespace leasehold
