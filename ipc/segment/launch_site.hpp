/// The closed list of sites where a worker touches leased memory or scratch memory for a tenant.
/// Errors, events and benchmarks use these names. C++20-clean.
#pragma once

#include <cstdint>
#include <string_view>

namespace leasehold {

enum class LaunchSite : std::uint8_t {
  WeightLoad,
  BlockCopy,
  Embedding,
  AttentionNorm,
  QueryProjection,
  KeyProjection,
  ValueProjection,
  QueryNorm,
  KeyNorm,
  ValueNorm,
  QueryRope,
  KeyRope,
  KvAppend,
  AttentionScores,
  AttentionMerge,
  AttentionOutput,
  MixerProjection,
  Convolution,
  StateUpdate,
  MixerNorm,
  MixerOutput,
  FfnNorm,
  ExpertRouter,
  ExpertRouting,
  ExpertGate,
  ExpertUp,
  ExpertDown,
  ExpertSum,
  FfnGate,
  FfnUp,
  SwiGlu,
  FfnDown,
  LayerEmbedding,
  OutputNorm,
  LmHead,
  Sampling,
  Commit,
};

inline constexpr int kLaunchSiteCount = static_cast<int>(LaunchSite::Commit) + 1;

constexpr std::string_view name(LaunchSite site) {
  constexpr std::string_view kNames[kLaunchSiteCount] = {"weight_load",
                                                         "block_copy",
                                                         "embedding",
                                                         "attention_norm",
                                                         "query_projection",
                                                         "key_projection",
                                                         "value_projection",
                                                         "query_norm",
                                                         "key_norm",
                                                         "value_norm",
                                                         "query_rope",
                                                         "key_rope",
                                                         "kv_append",
                                                         "attention_scores",
                                                         "attention_merge",
                                                         "attention_output",
                                                         "mixer_projection",
                                                         "convolution",
                                                         "state_update",
                                                         "mixer_norm",
                                                         "mixer_output",
                                                         "ffn_norm",
                                                         "expert_router",
                                                         "expert_routing",
                                                         "expert_gate",
                                                         "expert_up",
                                                         "expert_down",
                                                         "expert_sum",
                                                         "ffn_gate",
                                                         "ffn_up",
                                                         "swiglu",
                                                         "ffn_down",
                                                         "layer_embedding",
                                                         "output_norm",
                                                         "lm_head",
                                                         "sampling",
                                                         "commit"};
  return kNames[static_cast<unsigned>(site)];
}

/// What a unit can reach; the low two bits of an announcement.
enum class Touches : std::uint8_t {
  Nothing = 0,  ///< Idle.
  WeightsAndScratch = 1,
  TenantMemory = 2,  ///< Weights and scratch too.
};

}  // namespace leasehold
