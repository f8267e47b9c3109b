/// Reads the dimensions of a model from its metadata, and checks them for consistency and against
/// its tensors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "kernels/model/gguf/gguf.hpp"
#include "kernels/model/latent_config.hpp"
#include "kernels/model/recurrent_config.hpp"
#include "kernels/model/rope_config.hpp"
#include "kernels/model/window_config.hpp"
#include "kernels/op_args.hpp"

namespace leasehold {

/// The experts of the layers from `n_dense_layers` on, instead of the feed-forward or beside it.
/// Without experts, every count is 0.
struct ExpertConfig {
  std::uint32_t n_experts;
  std::uint32_t n_used;           ///< Experts used per row; at most n_experts.
  std::uint32_t n_ff;             ///< Feed-forward width of one expert.
  bool normalize_expert_weights;  ///< See ExpertRoutingArgs.
  ExpertGating gating = ExpertGating::Softmax;
  float scale = 1.0f;                ///< Multiplies the weights of chosen experts.
  std::uint32_t n_shared_ff = 0;     ///< Width of the expert that computes every row; 0: none.
  std::uint32_t n_dense_layers = 0;  ///< The first layers, which have no experts.
  std::uint32_t n_groups = 1;        ///< See ExpertRoutingArgs.
  std::uint32_t n_groups_used = 1;
  bool are_beside_ff = false;  ///< Layers with experts also have a feed-forward of their own.
  /// [n_layers]: layers without a feed-forward have no experts either; empty: all have one.
  std::vector<bool> has_feed_forward = {};
  std::uint32_t n_latent = 0;  ///< Width of what the chosen experts read and write; 0: n_embd.

  bool in_layer(std::uint32_t layer) const {
    return n_experts > 0 && layer >= n_dense_layers &&
           (has_feed_forward.empty() || has_feed_forward[layer]);
  }

  bool replace_ff(std::uint32_t layer) const { return in_layer(layer) && !are_beside_ff; }

  bool operator==(const ExpertConfig&) const = default;
};

/// Constant factors of the forward pass.
struct ScaleConfig {
  float embedding = 1.0f;  ///< Multiplies the embeddings of tokens.
  float attention;         ///< Multiplies the products of queries and keys.
  float logits = 1.0f;     ///< Multiplies the logits.

  bool operator==(const ScaleConfig&) const = default;
};

/// Soft caps; see AttentionArgs::softcap and ProjectionArgs::softcap; 0: none.
struct SoftcapConfig {
  float attention = 0.0f;
  float logits = 0.0f;

  bool operator==(const SoftcapConfig&) const = default;
};

/// How the final hidden states of a text become its embedding; the values of GGUF's pooling_type.
enum class PoolingType : std::uint8_t {
  None = 0,  ///< The file does not say.
  Mean = 1,  ///< The mean over all positions.
  Cls = 2,   ///< The first position.
  Last = 3,  ///< The last position.
  Rank = 4,  ///< A score, computed with further tensors.
};
/// "none", "mean", "cls", "last", "rank"
std::string_view name(PoolingType type);

/// The shape of one layer.
struct LayerConfig {
  std::uint32_t n_kv_heads;  ///< Divides n_heads; 0 without attention.
  std::uint32_t head_dim;    ///< n_heads · head_dim may differ from n_embd.
  std::uint32_t n_ff;        ///< Width of the feed-forward; 0: the layer has experts or none.
  /// The layer stores no keys and values and reads those of the layer this far before it, which has
  /// the same head_dim; 0: it stores its own.
  std::uint32_t kv_distance = 0;
  std::uint32_t latent_dim = 0;  ///< See KvLayer.
  Mixer mixer = Mixer::Attention;

  bool stores_kv() const { return kv_distance == 0 && mixer == Mixer::Attention; }
  bool operator==(const LayerConfig&) const = default;
};

/// Every count except n_ff, n_layer_embd and n_skipped_layers is at least 1. Products of two counts
/// fit in 32 bits.
struct ModelConfig {
  std::string name;  ///< general.name made printable, or the architecture if the file has none.
  std::string architecture;
  std::uint32_t n_layers;
  /// Layers at the end of the file that only propose tokens (multi-token prediction). They are not
  /// computed, and their tensors are not loaded.
  std::uint32_t n_skipped_layers;
  std::uint32_t n_embd;
  std::uint32_t n_heads;
  std::uint32_t n_kv_heads;         ///< The most of any layer.
  std::uint32_t head_dim;           ///< The largest of any layer.
  std::uint32_t n_ff;               ///< The largest of any layer.
  std::vector<LayerConfig> layers;  ///< [n_layers]
  /// Width of the embeddings of tokens that each layer has besides that of the model; 0: none.
  std::uint32_t n_layer_embd;
  RecurrentConfig recurrent;
  bool gates_attention = false;  ///< See Architecture.
  ExpertConfig experts;
  LatentConfig latent;
  std::uint32_t n_vocab;  ///< Rows of the embedding, which equal the tokenizer's tokens.
  /// At most the positions that the model was trained for and attends to.
  std::uint32_t n_context;
  bool has_sliding_window;  ///< n_context is the window of every layer; the training context is
                            ///< longer.
  WindowConfig windows;     ///< Layers that read fewer positions than n_context.
  RopeConfig rope;
  std::optional<RopeConfig> window_rope;  ///< For layers with a window; none: they use `rope`.
  Activation activation = Activation::SwiGlu;
  ScaleConfig scales;
  SoftcapConfig softcaps;
  float rms_epsilon;           ///< Epsilon of the norms of the residual.
  float head_epsilon;          ///< Epsilon of the norms of heads.
  bool norms_values = false;   ///< See HeadsArgs.
  bool centers_norms = false;  ///< Norms of the residual are RmsNormArgs::is_centered.
  bool is_parallel = false;    ///< See Architecture.
  bool tied_embeddings;        ///< token_embd.weight is also the output matrix.
  PoolingType pooling_type = PoolingType::None;

  bool operator==(const ModelConfig&) const = default;
};

/// Layers that all have the largest shape of the model, except that those with experts instead of
/// a feed-forward have no n_ff.
std::vector<LayerConfig> uniform_layers(const ModelConfig& config);

/// Elements of all heads together that a layer's output matrix reads.
inline std::uint32_t attention_width(const ModelConfig& config) {
  return config.n_heads * (config.latent.rank > 0 ? config.latent.value_dim : config.head_dim);
}

inline bool is_rotated(const ModelConfig& config, std::uint32_t layer) {
  return config.rope.rotates(layer) &&
         (config.windows.rotates_others || config.windows.limits(layer));
}

/// The layer whose keys and values a layer reads.
inline std::uint32_t kv_layer_of(const ModelConfig& config, std::uint32_t layer) {
  return layer - config.layers[layer].kv_distance;
}

/// The larger width of the feed-forwards that compute every row.
inline std::uint32_t common_ff(const ModelConfig& config) {
  return std::max(config.n_ff, config.experts.n_shared_ff);
}

/// The larger width of the gates of a recurrent layer and of gated attention.
inline std::uint32_t mixer_gate_width(const ModelConfig& config) {
  const std::uint32_t of_heads = config.gates_attention ? config.n_heads * config.head_dim : 0;
  return std::max(config.recurrent.n_values(), of_heads);
}

/// Errors: FileCorrupt for a missing or inconsistent key; MissingWeight without token_embd.weight;
/// UnsupportedModel with the key for an architecture, a scaling of positions or other metadata that
/// this build does not compute correctly, and for numbers beyond its limits.
Result<ModelConfig> read_config(const GgufFile& file);

}  // namespace leasehold
