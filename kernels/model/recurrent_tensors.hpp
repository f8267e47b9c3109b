/// The tensors of layers with a recurrent state, by family, for the table in architecture.cpp. They
/// are in the order in which the forward pass uses them, so that a layer is read sequentially.
#pragma once

#include "kernels/model/architecture.hpp"

namespace leasehold {

inline constexpr TensorSpec kQwen35Recurrent[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_qkv.weight", TensorDim::Embedding, TensorDim::Channels},
    {"attn_gate.weight", TensorDim::Embedding, TensorDim::RecurrentValues},
    {"ssm_alpha.weight", TensorDim::Embedding, TensorDim::RecurrentHeads},
    {"ssm_beta.weight", TensorDim::Embedding, TensorDim::RecurrentHeads},
    {.name = "ssm_conv1d.weight",
     .columns = TensorDim::Taps,
     .rows = TensorDim::Channels,
     .is_f32 = true},
    {"ssm_dt.bias", TensorDim::RecurrentHeads, TensorDim::One},
    {"ssm_a", TensorDim::RecurrentHeads, TensorDim::One},
    {"ssm_norm.weight", TensorDim::RecurrentValue, TensorDim::One},
    {"ssm_out.weight", TensorDim::RecurrentValues, TensorDim::Embedding},
};

// Rows are grouped by key head: its beta and alpha of each value head in one tensor; in older files
// also its query, key, values and gates in another one.
inline constexpr TensorDim kGroupQkvParts[] = {TensorDim::RecurrentKey, TensorDim::RecurrentKey,
                                               TensorDim::GroupValues};
inline constexpr TensorDim kGroupGateParts[] = {TensorDim::GroupValues};
inline constexpr TensorDim kGroupHeadParts[] = {TensorDim::GroupHeads};
inline constexpr TensorSpec kQwen3NextRecurrent[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {.name = "attn_qkv.weight",
     .columns = TensorDim::Embedding,
     .rows = TensorDim::Channels,
     .fused = "ssm_in.weight",
     .groups = TensorDim::RecurrentGroups,
     .parts = kGroupQkvParts},
    {.name = "attn_gate.weight",
     .columns = TensorDim::Embedding,
     .rows = TensorDim::RecurrentValues,
     .fused = "ssm_in.weight",
     .groups = TensorDim::RecurrentGroups,
     .parts = kGroupGateParts},
    {.name = "ssm_beta.weight",
     .columns = TensorDim::Embedding,
     .rows = TensorDim::RecurrentHeads,
     .fused = "ssm_ba.weight",
     .groups = TensorDim::RecurrentGroups,
     .parts = kGroupHeadParts},
    {.name = "ssm_alpha.weight",
     .columns = TensorDim::Embedding,
     .rows = TensorDim::RecurrentHeads,
     .fused = "ssm_ba.weight",
     .groups = TensorDim::RecurrentGroups,
     .parts = kGroupHeadParts},
    kQwen35Recurrent[5],
    kQwen35Recurrent[6],
    kQwen35Recurrent[7],
    kQwen35Recurrent[8],
    kQwen35Recurrent[9],
};

// The gate of the convolution's input, the gate of its output, and its input.
inline constexpr TensorSpec kLfm2Recurrent[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_gate.weight", TensorDim::Embedding, TensorDim::RecurrentValues, Presence::Required,
     "shortconv.in_proj.weight"},
    {"output_gate.weight", TensorDim::Embedding, TensorDim::RecurrentValues, Presence::Required,
     "shortconv.in_proj.weight"},
    {"attn_qkv.weight", TensorDim::Embedding, TensorDim::Channels, Presence::Required,
     "shortconv.in_proj.weight"},
    {.name = "ssm_conv1d.weight",
     .columns = TensorDim::Taps,
     .rows = TensorDim::Channels,
     .fused = "shortconv.conv.weight",
     .is_f32 = true},
    {"ssm_out.weight", TensorDim::RecurrentValues, TensorDim::Embedding, Presence::Required,
     "shortconv.out_proj.weight"},
};

inline constexpr TensorSpec kMamba2Recurrent[] = {
    {"attn_norm.weight", TensorDim::Embedding, TensorDim::One},
    {"attn_gate.weight", TensorDim::Embedding, TensorDim::RecurrentValues, Presence::Required,
     "ssm_in.weight"},
    {"attn_qkv.weight", TensorDim::Embedding, TensorDim::Channels, Presence::Required,
     "ssm_in.weight"},
    {"ssm_alpha.weight", TensorDim::Embedding, TensorDim::RecurrentHeads, Presence::Required,
     "ssm_in.weight"},
    {.name = "ssm_conv1d.weight",
     .columns = TensorDim::Taps,
     .rows = TensorDim::Channels,
     .is_f32 = true},
    {"ssm_conv1d.bias", TensorDim::Channels, TensorDim::One},
    {"ssm_dt.bias", TensorDim::RecurrentHeads, TensorDim::One},
    {.name = "ssm_a", .columns = TensorDim::One, .rows = TensorDim::RecurrentHeads, .is_f32 = true},
    {.name = "ssm_d", .columns = TensorDim::One, .rows = TensorDim::RecurrentHeads, .is_f32 = true},
    {.name = "ssm_norm.weight",
     .columns = TensorDim::GroupValues,
     .rows = TensorDim::RecurrentGroups,
     .is_f32 = true},
    {"ssm_out.weight", TensorDim::RecurrentValues, TensorDim::Embedding},
};

}  // namespace leasehold
