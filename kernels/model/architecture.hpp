/// The supported model architectures, as one table. To add an architecture, add a row and, if it
/// has additional tensors, a list of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/op_args.hpp"

namespace leasehold {

/// Dimensions of tensors, computed from a ModelConfig.
enum class TensorDim : std::uint8_t {
  One,
  Embedding,          ///< n_embd
  Query,              ///< n_heads · head_dim
  KeyValue,           ///< n_kv_heads · head_dim
  Head,               ///< head_dim
  Heads,              ///< n_heads
  FeedForward,        ///< n_ff
  Experts,            ///< experts.n_experts
  ExpertFeedForward,  ///< experts.n_ff
  SharedFeedForward,  ///< experts.n_shared_ff
  Vocabulary,         ///< n_vocab
};

struct ModelConfig;
/// The dimension of a tensor of layer `layer`; tensors of no layer have the same in every one.
std::uint32_t dimension(TensorDim dim, const ModelConfig& config, std::uint32_t layer);

/// The number of copies of a tensor in a layer, and whether it may be absent.
enum class Presence : std::uint8_t {
  Required,
  Optional,   ///< Used if the file has it.
  PerExpert,  ///< Required; one matrix per expert, concatenated in one tensor.
};

/// A tensor of a model. Vectors (one row) are always F32. A model in which one of the dimensions is
/// 0 has no such tensor.
///
/// A file may instead have one tensor `fused` that contains the rows of several tensors, in their
/// order in the table: all rows of the first one, then of the second one. With experts, each
/// expert's matrix is fused like that.
struct TensorSpec {
  std::string_view name;  ///< For tensors of a block: the part after "blk.N.".
  TensorDim columns;
  TensorDim rows;
  Presence presence = Presence::Required;
  std::string_view fused = {};  ///< Empty: none. May be the name of one of its tensors.
};

/// Some layers of the model have a window (attention.sliding_window), and the others have none.
struct WindowRule {
  /// Layers n - 1, 2n - 1, … have no window, unless the file has a pattern of its own. 0: every
  /// layer has the window, which then limits the context of the model.
  std::uint32_t full_every = 0;
  /// The window of files that do not name one; 0: none.
  std::uint32_t width = 0;
  /// Layers with a window rotate without scaling, from rope.freq_base_swa.
  bool rotates_plainly = false;
  /// The base of rotates_plainly if the file has none; 0: that of the other layers.
  float freq_base = 0.0f;
};

/// The soft caps of files that do not name them; 0: none.
struct SoftcapRule {
  bool is_supported = false;
  float attention = 0.0f;
  float logits = 0.0f;
};

/// A layer has the tensors of `attention`, then of `feed_forward`, in layout order. Layers with
/// experts have `experts` instead of `feed_forward`.
struct Architecture {
  std::string_view name;  ///< Value of general.architecture, and prefix of the metadata keys.
  RopeStyle rope_style;
  std::span<const TensorSpec> attention;
  std::span<const TensorSpec> feed_forward;  ///< Empty: layers without experts are not supported.
  std::span<const TensorSpec> experts;       ///< Empty: models with experts are not supported.
  /// One more expert may compute every row. A gate scales it if its tensor is in `experts`.
  bool has_shared_expert = false;
  /// The weights of a row's chosen experts are divided by their sum.
  bool normalize_expert_weights = false;
  /// Only if the file says so, in expert_weights_norm.
  bool reads_expert_weights_norm = false;
  ExpertGating expert_gating = ExpertGating::Softmax;
  /// Layers n - 1, 2n - 1, … are not rotated; 0: all are.
  std::uint32_t unrotated_layer_every = 0;
  /// The file may scale embeddings, residual branches, attention scores and logits.
  bool has_scales = false;
  /// attention.sliding_window of these files does not limit attention.
  bool ignores_window = false;
  WindowRule windows = {};
  SoftcapRule softcaps = {};
  Activation activation = Activation::SwiGlu;
  bool embeds_by_root_width = false;  ///< Embeddings are multiplied by sqrt(n_embd).
  /// Models of this many layers divide scores by sqrt(n_embd / n_heads) instead of sqrt(head_dim).
  std::uint32_t wide_score_layers = 0;
};

/// Returns null for an unsupported architecture.
const Architecture* find_architecture(std::string_view name);

/// "llama, qwen2, …", for messages.
std::string architecture_names();

/// The supported architecture with the most similar name; empty if none is similar.
std::string nearest_architecture(std::string_view name);

}  // namespace leasehold
