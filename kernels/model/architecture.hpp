/// The supported model architectures, as one table. To add an architecture, add a row and, if it
/// has additional tensors, a list of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/model/recurrent_config.hpp"
#include "kernels/op_args.hpp"

namespace leasehold {

/// Dimensions of tensors, computed from a ModelConfig.
enum class TensorDim : std::uint8_t {
  One,
  Embedding,             ///< n_embd
  Query,                 ///< n_heads · head_dim
  KeyValue,              ///< n_kv_heads · head_dim; 0 if the layer stores no keys and values
  Head,                  ///< head_dim
  StoredHead,            ///< head_dim; 0 if the layer stores no keys and values
  Heads,                 ///< n_heads
  FeedForward,           ///< n_ff
  Experts,               ///< experts.n_experts
  ExpertFeedForward,     ///< experts.n_ff
  SharedFeedForward,     ///< experts.n_shared_ff
  Vocabulary,            ///< n_vocab
  LayerEmbedding,        ///< n_layer_embd
  LayerEmbeddings,       ///< n_layers · n_layer_embd
  LayerEmbeddingOutput,  ///< n_embd; 0 if n_layer_embd is 0
  // Of latent attention; see LatentConfig.
  QueryRank,        ///< latent.query_rank
  DirectQuery,      ///< n_embd without a query rank, otherwise 0
  UnrotatedHead,    ///< latent.unrotated_dim
  RotatedHead,      ///< rope.dim
  LatentRank,       ///< latent.rank
  LatentValue,      ///< latent.value_dim
  AttentionOutput,  ///< n_heads · latent.value_dim
  // Of `recurrent` in the config.
  Taps,             ///< n_taps
  Channels,         ///< channels
  RecurrentHeads,   ///< n_heads
  RecurrentGroups,  ///< n_groups
  GroupHeads,       ///< n_heads / n_groups
  RecurrentKey,     ///< key_dim
  RecurrentValue,   ///< head_dim
  RecurrentValues,  ///< head_dim of all heads, or channels without heads
  GroupValues,      ///< head_dim of all heads of a group
  LatentExpert,     ///< experts.n_latent
  ExpertEmbedding,  ///< experts.n_latent, or n_embd if that is 0
};

struct ModelConfig;
/// The dimension of a tensor of layer `layer`; tensors of no layer have the same in every one.
std::uint32_t dimension(TensorDim dim, const ModelConfig& config, std::uint32_t layer);

struct TensorSpec;
/// The number of matrices that a tensor consists of.
std::uint32_t matrix_count(const TensorSpec& spec, const ModelConfig& config);

/// The number of copies of a tensor in a layer, and whether it may be absent.
enum class Presence : std::uint8_t {
  Required,
  Optional,   ///< Used if the file has it.
  PerExpert,  ///< Required; one matrix per expert, concatenated in one tensor.
  PerHead,    ///< Likewise one matrix per query head.
};

/// A tensor of a model. Vectors (one row) are always F32. A model in which one of the dimensions is
/// 0 has no such tensor.
///
/// A file may instead have one tensor `fused` that contains the rows of several tensors, in their
/// order in the table: all rows of the first one, then of the second one. With experts or heads,
/// each of their matrices is fused like that, and with `parts` the rows of each head or group of
/// heads.
struct TensorSpec {
  std::string_view name;  ///< For tensors of a block: the part after "blk.N.".
  TensorDim columns;
  TensorDim rows;
  Presence presence = Presence::Required;
  std::string_view fused = {};  ///< Empty: none. May be the name of one of its tensors.
  bool is_table = false;        ///< Rows are read singly, never multiplied.
  bool is_f32 = false;          ///< Always F32, although it has several rows.
  /// If the fused tensor consists of `groups` matrices, the rows that this tensor has in each of
  /// them. It is loaded part by part: the first part of every group, then the second one.
  TensorDim groups = TensorDim::One;
  std::span<const TensorDim> parts = {};
  bool is_transposed = false;  ///< In the fused tensor; a row there is a column of this tensor.

  /// The rows and columns that each matrix has in the fused tensor, without `parts`.
  constexpr TensorDim fused_rows() const { return is_transposed ? columns : rows; }
  constexpr TensorDim fused_columns() const { return is_transposed ? rows : columns; }
};

/// Layers with a recurrent state among layers with attention.
struct MixerRule {
  Mixer mixer = Mixer::Attention;  ///< Attention: every layer has it.
  /// Layers n - 1, 2n - 1, … have attention, unless the file has a list or a distance of its own.
  /// 0: the layers with kv heads have it.
  std::uint32_t attention_every = 0;
  /// A layer has a mixer or a feed-forward, not both.
  bool excludes_feed_forward = false;
  bool alternates_groups = false;  ///< See RecurrenceArgs.
};

/// Some layers of the model have a window (attention.sliding_window), and the others have none.
struct WindowRule {
  /// Layers n - 1, 2n - 1, … have no window, unless the file has a pattern of its own. 0: every
  /// layer has the window, which then limits the context of the model.
  std::uint32_t full_every = 0;
  /// The window of files that do not name one; 0: none.
  std::uint32_t width = 0;
  /// Layers with a window rotate without scaling. In any family the file may name their base.
  bool rotates_plainly = false;
  /// The base of rotates_plainly if the file has none; 0: that of the other layers.
  float freq_base = 0.0f;
  bool needs_width = false;    ///< The file has to name the width.
  bool needs_pattern = false;  ///< The file has to name the pattern.
  bool rotates_others = true;  ///< Layers without a window are rotated.
};

/// The soft caps of files that do not name them; 0: none.
struct SoftcapRule {
  bool is_supported = false;
  float attention = 0.0f;
  float logits = 0.0f;
};

/// Models that gate their experts by sigmoids although their files do not say so.
struct SigmoidModels {
  std::uint32_t n_vocab = 0;
  std::uint32_t least_layers = 0;
  std::uint32_t most_layers = 0;
};

/// A layer has the tensors of its mixer, then of its feed-forward, in layout order: `attention` or
/// `recurrent`, and `experts` or `feed_forward`, or both.
struct Architecture {
  std::string_view name;  ///< Value of general.architecture, and prefix of the metadata keys.
  RopeStyle rope_style;
  /// Converters move the query and key rows of each head so that rotated pairs are neighbours:
  /// row 2i + t of a head of D rows is row t · D / 2 + i of the checkpoint, t = 0 or 1.
  bool permutes_heads = false;
  std::span<const TensorSpec> attention;
  std::span<const TensorSpec> feed_forward;    ///< Empty: layers without experts are not supported.
  std::span<const TensorSpec> experts;         ///< Empty: models with experts are not supported.
  std::span<const TensorSpec> recurrent = {};  ///< Instead of `attention`, in layers with a state.
  MixerRule mixers = {};
  bool gates_attention = false;  ///< A sigmoid of a projection multiplies the heads' outputs.
  std::string_view output_norm = "output_norm.weight";  ///< Its name in files.
  /// One more expert may compute every row. A gate scales it if its tensor is in `experts`.
  bool has_shared_expert = false;
  /// Layers with experts also have the feed-forward. Both have norms of their own, and their sum is
  /// added to the residual.
  bool has_experts_beside = false;
  /// The weights of a row's chosen experts are divided by their sum.
  bool normalize_expert_weights = false;
  /// Only if the file says so, in expert_weights_norm.
  bool reads_expert_weights_norm = false;
  ExpertGating expert_gating = ExpertGating::Softmax;
  /// The file may name another one, in expert_gating_func.
  bool reads_expert_gating = false;
  SigmoidModels sigmoid_models = {};
  bool has_latent_experts = false;  ///< Experts may work in another width than the model.
  /// Layers n - 1, 2n - 1, … are not rotated; 0: all are.
  std::uint32_t unrotated_layer_every = 0;
  /// The file has rope.dimension_sections, which llama.cpp requires; see read_style.
  bool has_rope_sections = false;
  bool reads_rope_finetuned = false;  ///< If rope.scaling.finetuned is false, no layer is rotated.
  /// The file may scale embeddings, residual branches, attention scores and logits.
  bool has_scales = false;
  /// attention.sliding_window of these files does not limit attention.
  bool ignores_window = false;
  WindowRule windows = {};
  SoftcapRule softcaps = {};
  Activation activation = Activation::SwiGlu;
  bool embeds_by_root_width = false;  ///< Embeddings are multiplied by sqrt(n_embd).
  bool needs_rope_factors = false;    ///< The file has to have rope_freqs.weight.
  /// Scores are the products of queries and keys; otherwise they are divided by sqrt(head_dim).
  bool has_unscaled_scores = false;
  /// Norms subtract the mean first (layer normalisation).
  bool centers_norms = false;
  /// Attention and feed-forward read the norm of the same residual, and both are added to it.
  bool is_parallel = false;
  bool multiplies_logits = false;  ///< The file's logit_scale multiplies logits.
  bool norms_values = false;       ///< Each head of the values is normalised, without a weight.
  /// The last layers may read keys and values of earlier ones, and each layer may add an embedding
  /// of its own.
  bool has_shared_kv = false;
  bool has_layer_embeddings = false;
  /// Models of this many layers divide scores by sqrt(n_embd / n_heads) instead of sqrt(head_dim).
  std::uint32_t wide_score_layers = 0;
  bool has_latent_attention = false;  ///< See LatentConfig.
};

/// The tensors of a layer with this mixer, without those of its feed-forward.
std::span<const TensorSpec> mixer_tensors(const Architecture& architecture, Mixer mixer);

/// Returns null for an unsupported architecture.
const Architecture* find_architecture(std::string_view name);

/// All rows of the table.
std::span<const Architecture> architectures();

/// "llama, qwen2, …", for messages.
std::string architecture_names();

/// The supported architecture with the most similar name; empty if none is similar.
std::string nearest_architecture(std::string_view name);

}  // namespace leasehold
