/// The buffers of a step's intermediate values. The forward pass allocates, and a plan counts, the
/// buffers that `each` names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/model/config.hpp"

namespace leasehold {

/// The most rows of a step, and the highest rank of their adapters.
struct StepLimits {
  std::uint32_t max_rows = 256;
  std::uint32_t max_logit_rows = 64;
  std::uint32_t max_adapter_rank = 0;  ///< 0: no sequence has an adapter.
};

/// The buffers of a layer with recurrent state.
struct MixerBuffers {
  float* input = nullptr;      // [max_rows, channels]
  float* convolved = nullptr;  // [max_rows, channels]
  float* gate = nullptr;       // [max_rows, n_values], or the gates of attention
  float* values = nullptr;     // [max_rows, n_values]
  float* steps = nullptr;      // [max_rows, recurrent.n_heads]
  float* weights = nullptr;    // [max_rows, recurrent.n_heads]
};

/// The buffers of latent attention, which has no v.
struct LatentBuffers {
  float* query = nullptr;      // [max_rows, latent.query_rank]
  float* unrotated = nullptr;  // [max_rows, n_heads, latent.unrotated_dim]
  float* values = nullptr;     // [max_rows, n_heads, latent.value_dim]
};

/// The buffers of models with an embedding per layer.
struct LayerEmbeddingBuffers {
  float* all = nullptr;         // [max_rows, n_layers, n_layer_embd]
  float* projection = nullptr;  // likewise; later [max_rows, n_layer_embd]
};

/// The buffers of a layer with experts.
struct ExpertBuffers {
  float* scores = nullptr;          // [max_rows, n_experts]
  std::uint32_t* chosen = nullptr;  // [max_rows, n_used]
  float* weights = nullptr;         // [max_rows, n_used]
  float* gate = nullptr;            // [max_rows, n_used, experts.n_ff]
  float* up = nullptr;              // [max_rows, n_used, experts.n_ff]
  float* out = nullptr;             // [max_rows, n_used, n_embd]; also the shared expert's
  float* shared_gate = nullptr;     // [max_rows]
  float* sum = nullptr;             // [max_rows, n_embd]; of experts beside a feed-forward
  float* latent = nullptr;          // [max_rows, experts.n_latent]
};

/// Pointers into the backend's scratch memory.
struct StepBuffers {
  float* x = nullptr;          // [max_rows, n_embd]
  float* normed = nullptr;     // [max_rows, n_embd]
  float* q = nullptr;          // [max_rows, n_heads, head_dim]
  float* k = nullptr;          // [max_rows, n_kv_heads, head_dim]
  float* v = nullptr;          // [max_rows, n_kv_heads, head_dim]
  float* attention = nullptr;  // [max_rows, n_heads, head_dim or latent.rank]
  float* gate = nullptr;       // [max_rows, common_ff]
  float* up = nullptr;         // [max_rows, common_ff]
  float* logits = nullptr;     // [max_logit_rows, n_vocab]
  float* low_rank = nullptr;   // [max_rows, LowRankArgs::kMaxProducts, max_adapter_rank]

  LatentBuffers latent = {};
  LayerEmbeddingBuffers embedding = {};
  MixerBuffers mixer = {};
  ExpertBuffers experts = {};

  /// Calls `take(pointer, elements)` for each buffer that the model needs.
  template <class Take>
  void each(const ModelConfig& config, const StepLimits& limits, Take&& take) {
    const std::size_t rows = limits.max_rows;
    take(x, rows * config.n_embd);
    take(normed, rows * config.n_embd);
    take(q, rows * config.n_heads * config.head_dim);
    take(k, rows * config.n_kv_heads * config.head_dim);
    const LatentConfig& of_latent = config.latent;
    const bool is_latent = of_latent.rank > 0;
    take(v, is_latent ? 0 : rows * config.n_kv_heads * config.head_dim);
    take(attention, rows * config.n_heads * (is_latent ? of_latent.rank : config.head_dim));
    take(gate, rows * common_ff(config));
    take(up, rows * common_ff(config));
    take(logits, std::size_t{limits.max_logit_rows} * config.n_vocab);
    take(low_rank, rows * LowRankArgs::kMaxProducts * limits.max_adapter_rank);
    if (is_latent) {
      take(latent.query, rows * of_latent.query_rank);
      take(latent.unrotated, rows * config.n_heads * of_latent.unrotated_dim);
      take(latent.values, rows * config.n_heads * of_latent.value_dim);
    }
    if (config.n_layer_embd > 0) {
      const std::size_t elements = rows * config.n_layers * config.n_layer_embd;
      take(embedding.all, elements);
      take(embedding.projection, elements);
    }
    const RecurrentConfig& recurrent = config.recurrent;
    take(mixer.input, rows * recurrent.channels);
    take(mixer.convolved, rows * recurrent.channels);
    take(mixer.gate, rows * mixer_gate_width(config));
    take(mixer.values, rows * recurrent.n_values());
    take(mixer.steps, rows * recurrent.n_heads);
    take(mixer.weights, rows * recurrent.n_heads);
    const ExpertConfig& of_experts = config.experts;
    if (of_experts.n_experts == 0) return;
    const std::size_t used = rows * of_experts.n_used;
    take(experts.scores, rows * of_experts.n_experts);
    take(experts.chosen, used);
    take(experts.weights, used);
    take(experts.gate, used * of_experts.n_ff);
    take(experts.up, used * of_experts.n_ff);
    take(experts.out, used * std::max(config.n_embd, of_experts.n_latent));
    take(experts.shared_gate, rows);
    if (of_experts.are_beside_ff) take(experts.sum, rows * config.n_embd);
    take(experts.latent, rows * of_experts.n_latent);
  }
};

/// Bytes of all buffers, each aligned as a backend aligns it.
std::size_t step_buffer_bytes(const ModelConfig& config, const StepLimits& limits);

}  // namespace leasehold
