/// The model to write: architecture, sizes and weight type. Pure.
///
/// Errors: BadRequest with the option to change.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/result.hpp"
#include "kernels/model/architecture.hpp"
#include "kernels/model/config.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold::make_model {

/// Scaling of RoPE positions: none; by a factor of 4, linearly or with YaRN; or by a tensor with
/// one divisor per frequency.
enum class Rope : std::uint8_t { Plain, Linear, Yarn, Divisors };

/// Kind of tokenizer: SentencePiece merges by score, ByteLevel merges bytes by rank.
enum class Vocabulary : std::uint8_t { SentencePiece, ByteLevel };

/// Sizes of a transformer, in elements. `tied`: the embedding table is also the output layer.
struct ModelShape {
  std::uint32_t layers = 0;
  std::uint32_t embd = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t ffn = 0;
  std::uint32_t vocab = 0;
  std::uint32_t context = 0;
  bool tied = false;
  std::uint32_t head_width = 0;    ///< 0: embd / heads.
  std::uint32_t experts = 0;       ///< 0: none.
  std::uint32_t experts_used = 0;  ///< Experts used per token.
  std::uint32_t expert_ffn = 0;    ///< 0: ffn.
  std::uint32_t dense_layers = 0;  ///< The first layers, which have no experts.
  std::uint32_t rope_width = 0;    ///< Rotated elements; 0: see ModelRequest::rope_dim.
  std::uint32_t window = 0;        ///< Sliding window of attention in tokens; 0: no window.

  std::uint32_t head_dim() const { return head_width != 0 ? head_width : embd / heads; }
  std::uint32_t query_width() const { return head_dim() * heads; }
  std::uint32_t expert_width() const { return expert_ffn != 0 ? expert_ffn : ffn; }
};

/// How the layers of a model differ from each other.
struct LayerShape {
  std::uint32_t window_head_width = 0;  ///< Of layers with a window; 0: that of the others.
  std::uint32_t shared_layers = 0;      ///< Last layers, which read keys and values of others.
  std::uint32_t layer_embd = 0;         ///< Width of the embeddings of each layer; 0: none.
};

/// What latent attention has besides.
struct LatentShape {
  std::uint32_t rank = 0;           ///< 0: four times head_dim.
  std::uint32_t query_rank = 0;     ///< 0: embd / 2.
  bool has_direct_queries = false;  ///< Queries are projected in one step.
  bool has_fused_heads = false;  ///< Keys and values of a head share a tensor, as in older files.
};

/// Sizes of a recurrent state, in models that have one.
struct StateSizes {
  std::uint32_t key_size = 0;  ///< Elements of a key; 0: head_dim().
  std::uint32_t groups = 0;    ///< Key heads; 0: kv_heads.
  std::uint32_t heads = 0;     ///< Value heads; 0: heads of the attention.
};

/// The type of all matrices, or in a mix of most matrices.
struct WeightType {
  TensorType type;
  bool is_mix = false;
};

/// The window of architectures that need one, in tokens.
inline constexpr std::uint32_t kDefaultWindow = 64;

/// Everything that determines the bytes of the file.
struct ModelRequest {
  std::string_view architecture = "llama";  ///< A name of kernels/model/architecture.hpp.
  ModelShape shape;
  LayerShape layer_shape = {};
  LatentShape latent_shape = {};
  StateSizes state = {};
  TensorType type = TensorType::F32;
  bool is_mix = false;  ///< Some matrices have another type (tensor_plan.hpp); `type` is Q4_K.
  std::uint64_t seed = 0;
  Rope rope = Rope::Plain;
  std::uint32_t parts = 1;  ///< Number of files.
  Vocabulary vocabulary = Vocabulary::SentencePiece;
  bool joins_heads = false;   ///< The file has the form of with_joined_heads.
  bool has_optional = false;  ///< Also tensors that the architecture may lack.
  bool embeds = false;        ///< Pools the last position, and ends each text with the end token.

  /// Precondition: the architecture exists.
  const Architecture& row() const { return *find_architecture(architecture); }
  /// The window of the layers that have one; 0: none. Some architectures need one.
  std::uint32_t window() const {
    return shape.window > 0 || !row().windows.needs_width ? shape.window : kDefaultWindow;
  }
  std::uint32_t window_head_dim() const {
    return layer_shape.window_head_width != 0 ? layer_shape.window_head_width : shape.head_dim();
  }
  /// Whether the file has divisors of the frequencies.
  bool has_divisors() const { return rope == Rope::Divisors || row().needs_rope_factors; }
  /// Whether a layer has a window, by the rule of the architecture.
  bool has_window(std::uint32_t layer) const;
  /// Width of the shared expert: that of a chosen one, or of the layers in a model without dense
  /// layers; 0: none.
  std::uint32_t shared_width() const;
  /// Rotated elements of a head: all by default, or half of them with latent attention.
  std::uint32_t rope_dim() const;
  /// The dimensions of latent attention, whose heads have values of head_dim elements.
  LatentConfig latent() const;
  /// The dimensions that a worker reads from the file. Among layers with a recurrent state, every
  /// fourth one has attention, and the last one if there are fewer than four.
  ModelConfig dimensions() const;
};

inline constexpr float kRopeFactor = 4.0f;

/// The sizes of a named shape; all zero for "custom".
Result<ModelShape> named_shape(std::string_view name);
/// The name of an architecture that a worker loads.
Result<std::string_view> architecture_from(std::string_view name);
/// Parses a type in lower case, or the mix "q4_k_m".
Result<WeightType> weight_type_from(std::string_view name);
Result<Rope> rope_from(std::string_view name);
Result<Vocabulary> vocabulary_from(std::string_view name);

/// Checks that a model of this shape and type can be written.
Result<void> check(const ModelRequest& request);

}  // namespace leasehold::make_model
