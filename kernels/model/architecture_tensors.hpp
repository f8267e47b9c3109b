/// The tensors of a layer, by family, for the table in architecture.cpp. They are in the order in
/// which the forward pass uses them, so that a layer is read sequentially.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/model/architecture.hpp"

namespace leasehold {

inline constexpr TensorSpec kLlamaAttention[] = {
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

inline constexpr TensorSpec kQwen2Attention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_q.bias", TensorDim::Query, TensorDim::One},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_k.bias", TensorDim::KeyValue, TensorDim::One},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_v.bias", TensorDim::KeyValue, TensorDim::One},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
};

inline constexpr TensorSpec kGlm4MoeAttention[] = {
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

inline constexpr TensorSpec kGlm4Attention[] = {
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
inline constexpr TensorSpec kMiniMaxAttention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_q_norm.weight", TensorDim::Query, TensorDim::One},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_k_norm.weight", TensorDim::KeyValue, TensorDim::One},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
};

inline constexpr TensorSpec kGemma2Attention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
    {"post_attention_norm.weight", TensorDim::Embedding, TensorDim::One},
};
inline constexpr auto kPlainAttention = std::span(kGemma2Attention).first<5>();

inline constexpr TensorSpec kGemma3Attention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_q_norm.weight", TensorDim::Head, TensorDim::One},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_k_norm.weight", TensorDim::Head, TensorDim::One},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
    {"post_attention_norm.weight", TensorDim::Embedding, TensorDim::One},
};
inline constexpr auto kQwen3Attention = std::span(kGemma3Attention).first<7>();

// Without attn_v, values are the products of attn_k.
inline constexpr TensorSpec kGemma4Attention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_q_norm.weight", TensorDim::Head, TensorDim::One},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_k_norm.weight", TensorDim::StoredHead, TensorDim::One},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue, Presence::Optional},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
    {"post_attention_norm.weight", TensorDim::Embedding, TensorDim::One},
};

// No norms before attention and feed-forward; those of queries and keys cover all heads together.
inline constexpr TensorSpec kOlmo2Attention[] = {
    {"attn_q.weight", TensorDim::Embedding, TensorDim::Query},
    {"attn_q_norm.weight", TensorDim::Query, TensorDim::One},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_k_norm.weight", TensorDim::KeyValue, TensorDim::One},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
    {"post_attention_norm.weight", TensorDim::Embedding, TensorDim::One},
};

inline constexpr TensorSpec kGptOssAttention[] = {
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

// Every head of the tensor of queries has its unrotated rows first. A file has one of the two forms
// of queries. Files from before April 2025 have the keys and values of each head in one tensor.
inline constexpr std::string_view kFusedKeysAndValues = "attn_kv_b.weight";
inline constexpr TensorSpec kLatentAttention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_q_a.weight", TensorDim::Embedding, TensorDim::QueryRank},
    {"attn_kv_a_mqa.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_q_a_norm.weight", TensorDim::QueryRank, TensorDim::One},
    {"attn_q_unrotated.weight", TensorDim::QueryRank, TensorDim::UnrotatedHead, Presence::PerHead,
     "attn_q_b.weight"},
    {"attn_q_rotated.weight", TensorDim::QueryRank, TensorDim::RotatedHead, Presence::PerHead,
     "attn_q_b.weight"},
    {"attn_q_unrotated.weight", TensorDim::DirectQuery, TensorDim::UnrotatedHead, Presence::PerHead,
     "attn_q.weight"},
    {"attn_q_rotated.weight", TensorDim::DirectQuery, TensorDim::RotatedHead, Presence::PerHead,
     "attn_q.weight"},
    {.name = "attn_k_b.weight",
     .columns = TensorDim::UnrotatedHead,
     .rows = TensorDim::LatentRank,
     .presence = Presence::PerHead,
     .fused = kFusedKeysAndValues,
     .is_transposed = true},
    {"attn_kv_a_norm.weight", TensorDim::LatentRank, TensorDim::One},
    {"attn_v_b.weight", TensorDim::LatentRank, TensorDim::LatentValue, Presence::PerHead,
     kFusedKeysAndValues},
    {"attn_output.weight", TensorDim::AttentionOutput, TensorDim::Embedding},
};

// Each head of the file's query projection has the rows of its query, then those of its gate.
inline constexpr TensorDim kHeadPart[] = {TensorDim::Head};
inline constexpr TensorSpec kQwen35Attention[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {.name = "attn_q.weight",
     .columns = TensorDim::Embedding,
     .rows = TensorDim::Query,
     .fused = "attn_q.weight",
     .groups = TensorDim::Heads,
     .parts = kHeadPart},
    {.name = "attn_gate.weight",
     .columns = TensorDim::Embedding,
     .rows = TensorDim::Query,
     .fused = "attn_q.weight",
     .groups = TensorDim::Heads,
     .parts = kHeadPart},
    {"attn_q_norm.weight", TensorDim::Head, TensorDim::One},
    {"attn_k.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_k_norm.weight", TensorDim::Head, TensorDim::One},
    {"attn_v.weight", TensorDim::Embedding, TensorDim::KeyValue},
    {"attn_output.weight", TensorDim::Query, TensorDim::Embedding},
};

inline constexpr TensorSpec kFeedForward[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate.weight", TensorDim::Embedding, TensorDim::FeedForward},
    {"ffn_up.weight", TensorDim::Embedding, TensorDim::FeedForward},
    {"ffn_down.weight", TensorDim::FeedForward, TensorDim::Embedding},
};

inline constexpr auto kCohere2FeedForward = std::span(kFeedForward).last<3>();

inline constexpr TensorSpec kGlm4FeedForward[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate.weight", TensorDim::Embedding, TensorDim::FeedForward, Presence::Required,
     "ffn_up.weight"},
    {"ffn_up.weight", TensorDim::Embedding, TensorDim::FeedForward, Presence::Required,
     "ffn_up.weight"},
    {"ffn_down.weight", TensorDim::FeedForward, TensorDim::Embedding},
    {"post_ffw_norm.weight", TensorDim::Embedding, TensorDim::One},
};
inline constexpr auto kFusedFeedForward = std::span(kGlm4FeedForward).first<4>();

inline constexpr TensorSpec kGemma4FeedForward[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate.weight", TensorDim::Embedding, TensorDim::FeedForward},
    {"ffn_up.weight", TensorDim::Embedding, TensorDim::FeedForward},
    {"ffn_down.weight", TensorDim::FeedForward, TensorDim::Embedding},
    {"post_ffw_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"inp_gate.weight", TensorDim::Embedding, TensorDim::LayerEmbedding},
    {"proj.weight", TensorDim::LayerEmbedding, TensorDim::Embedding},
    {"post_norm.weight", TensorDim::LayerEmbeddingOutput, TensorDim::One},
    {"layer_output_scale.weight", TensorDim::One, TensorDim::One, Presence::Optional},
};
inline constexpr auto kGemmaFeedForward = std::span(kGemma4FeedForward).first<5>();
inline constexpr auto kOlmo2FeedForward = kGemmaFeedForward.last<4>();

// Beside the feed-forward. The norm of the feed-forward's result and the norms of the experts'
// input and result are the first three.
inline constexpr TensorSpec kGemma4Experts[] = {
    {"post_ffw_norm_1.weight", TensorDim::Embedding, TensorDim::One},
    {"pre_ffw_norm_2.weight", TensorDim::Embedding, TensorDim::One},
    {"post_ffw_norm_2.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate_inp.scale", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate_inp.weight", TensorDim::Embedding, TensorDim::Experts},
    {"ffn_gate_exps.weight", TensorDim::Embedding, TensorDim::ExpertFeedForward,
     Presence::PerExpert, "ffn_gate_up_exps.weight"},
    {"ffn_up_exps.weight", TensorDim::Embedding, TensorDim::ExpertFeedForward, Presence::PerExpert,
     "ffn_gate_up_exps.weight"},
    {"ffn_down_exps.weight", TensorDim::ExpertFeedForward, TensorDim::Embedding,
     Presence::PerExpert},
    {"ffn_down_exps.scale", TensorDim::Experts, TensorDim::One, Presence::Optional},
};

// The norm before the experts has the name of a norm after attention. A bias has one row per
// expert.
inline constexpr TensorSpec kGptOssExperts[] = {
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

inline constexpr TensorSpec kExpertsAndShared[] = {
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
inline constexpr auto kExperts = std::span(kExpertsAndShared).first<5>();

inline constexpr TensorSpec kBiasedExpertsAndShared[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"ffn_gate_inp.weight", TensorDim::Embedding, TensorDim::Experts},
    {"exp_probs_b.bias", TensorDim::Experts, TensorDim::One},
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
inline constexpr auto kBiasedExperts = std::span(kBiasedExpertsAndShared).first<6>();

// The same tensors of files that may lack the bias with which experts are chosen.
inline constexpr auto kOptionallyBiasedExperts = [] {
  auto specs = std::to_array(kBiasedExpertsAndShared);
  specs[2].presence = Presence::Optional;
  return specs;
}();

// A layer has one norm, before its mixer or before its feed-forward, which has no gate.
inline constexpr TensorSpec kNemotronFeedForward[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One, Presence::Required,
     "attn_norm.weight"},
    {"ffn_up.weight", TensorDim::Embedding, TensorDim::FeedForward},
    {"ffn_down.weight", TensorDim::FeedForward, TensorDim::Embedding},
};
inline constexpr TensorSpec kNemotronExperts[] = {
    {"ffn_norm.weight", TensorDim::Embedding, TensorDim::One, Presence::Required,
     "attn_norm.weight"},
    {"ffn_gate_inp.weight", TensorDim::Embedding, TensorDim::Experts},
    {"exp_probs_b.bias", TensorDim::Experts, TensorDim::One},
    {"ffn_latent_down.weight", TensorDim::Embedding, TensorDim::LatentExpert},
    {"ffn_up_exps.weight", TensorDim::ExpertEmbedding, TensorDim::ExpertFeedForward,
     Presence::PerExpert},
    {"ffn_down_exps.weight", TensorDim::ExpertFeedForward, TensorDim::ExpertEmbedding,
     Presence::PerExpert},
    {"ffn_latent_up.weight", TensorDim::LatentExpert, TensorDim::Embedding},
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
inline constexpr auto kGlm4MoeFeedForward = after_attention(kFeedForward);
inline constexpr auto kGlm4MoeExperts = after_attention(kBiasedExpertsAndShared);
inline constexpr auto kQwen35Experts = after_attention(kExpertsAndShared);

}  // namespace leasehold
