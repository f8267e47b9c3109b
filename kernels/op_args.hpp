/// The arguments of every operator of the forward pass. Plain data; nothing here owns memory.
///
/// A *row* is one token position of one sequence, of a prompt or of decoding. A launch has `n_rows`
/// of them. Row r belongs to sequence `rows[r].sequence` (an index into the step's GateSet) at
/// position `rows[r].position`. Rows of one sequence are consecutive and ascend by one.
///
/// Plain pointers point into scratch, except `CopyInArgs::from` and the spans, which are host
/// memory. `Leased` pointers are broker-owned memory; only a permit opens them. C++20-clean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ipc/segment/gate_set.hpp"
#include "ipc/segment/launch_site.hpp"
#include "ipc/segment/leased.hpp"
#include "kernels/kv_layout.hpp"
#include "kernels/low_rank_args.hpp"
#include "kernels/quant/tensor_type.hpp"
#include "kernels/state_layout.hpp"

namespace leasehold {

/// The two elements of a head that a rotation pairs: (2i, 2i+1), or (i, i + rope_dim/2).
enum class RopeStyle : std::uint8_t { Interleaved, Halves };

/// How the rows of a matrix lie in memory. The layout decides the arithmetic of its matmuls: rows
/// as in the file are multiplied as floats, groups of rows (kernels/quant/row_group.hpp) as int8.
enum class MatrixLayout : std::uint8_t { Rows, RowGroups };

/// How a feed-forward combines a gate and an up value (kernels/numerics/elementwise.hpp).
enum class Activation : std::uint8_t {
  SwiGlu,         ///< silu(gate) · up
  GeGlu,          ///< gelu(gate) · up
  ClampedSwiGlu,  ///< The clamped form of gpt-oss.
  Sigmoid,        ///< sigmoid(gate) · up
  ReGlu,          ///< max(gate, 0) · up; the squared ReLU of gate if up is gate
};

/// One matrix in the weights region.
struct WeightMatrix {
  TensorType type = TensorType::F32;
  MatrixLayout layout = MatrixLayout::Rows;
  std::uint32_t n_out = 0;  ///< Rows of the matrix.
  std::uint32_t n_in = 0;   ///< Elements of a row.
  /// [n_out] rows of row_size_bytes(type, n_in) bytes, or [row_groups(n_out)] groups of
  /// row_group_bytes(type, n_in).
  Leased<const std::byte> data;
};

struct RowRef {
  std::uint32_t sequence;
  std::uint32_t position;
};

/// The blocks of one sequence in one group of layers (KvLayout): block i holds positions
/// [16i, 16i + 16). No row reads or writes a block before `first`, such as one that the window of
/// the group has left; other blocks that no row reads or writes may be null.
struct BlockTableView {
  std::span<const Leased<std::byte>> blocks;  ///< Block `first` and those after it.
  std::uint32_t first = 0;

  BlockTableView() = default;
  BlockTableView(std::span<const Leased<std::byte>> from_first, std::uint32_t first_block = 0)
      : blocks(from_first), first(first_block) {}

  /// Block `index` of the positions; null before `first`.
  Leased<std::byte> operator[](std::size_t index) const {
    return index < first ? Leased<std::byte>{} : blocks[index - first];
  }
};

/// The input of a step. The backend receives it before the launches, whose arguments refer to parts
/// of it. All of it is host memory and does not change until the step is finished.
struct StepInput {
  const GateSet* gates = nullptr;
  std::span<const RowRef> rows;                  ///< [n_rows]
  std::span<const std::int32_t> tokens;          ///< [n_rows], each in [0, n_vocab)
  std::span<const BlockTableView> block_tables;  ///< [KvLayout::n_groups(), n_sequences]
  std::span<const std::uint32_t> logit_rows;     ///< Rows that need logits, ascending.
  std::span<const float> cos_sin;  ///< [n_rows, rope_dim/2, 2] for each row's own position
  std::span<const float> query_scales = {};  ///< [n_rows]; empty means 1.
  /// The same as cos_sin for layers with a window; empty if they rotate like the others.
  std::span<const float> window_cos_sin = {};
  /// [n_sequences]; empty for models without recurrent state.
  std::span<const StateTableView> state_tables = {};
  AdapterTable adapters = {};  ///< Empty if no sequence has an adapter.
};

/// The arguments common to all operators. [n_rows] in an operator's arguments counts `rows`.
struct LaunchContext {
  const GateSet* gates = nullptr;
  std::span<const RowRef> rows;  ///< [n_rows]: all rows of the step, or a consecutive part.
  std::uint16_t layer = 0;
};

/// out[r, :] = table[tokens[r], :] · scale
struct EmbeddingArgs {
  WeightMatrix table;          ///< [n_vocab, n_embd]
  const std::int32_t* tokens;  ///< [n_rows], each in [0, n_vocab)
  float* out;                  ///< [n_rows, n_embd]
  float scale = 1.0F;
};

/// out (+)= (x · (scale / sqrt(dot(x, x) / width + epsilon))) · weight, per vector (Zhang &
/// Sennrich 2019); then out is multiplied by `out_scale`. With `is_centered`, sum(x) / width is
/// subtracted from x first (Ba et al. 2016, layer normalisation).
struct RmsNormArgs {
  LaunchSite site;
  const float* x;              ///< [n_rows, vectors_per_row, width]
  Leased<const float> weight;  ///< [width], or [vectors_per_row, width] if each has its own.
  float* out;                  ///< [n_rows, vectors_per_row, width]; may be x
  std::uint32_t width;
  float epsilon;
  float scale = 1.0F;
  bool accumulate = false;  ///< Adds to out (a residual) instead of overwriting it.
  bool is_centered = false;
  std::uint32_t vectors_per_row = 1;
  bool has_own_weights = false;        ///< Each vector of a row has a weight of its own.
  Leased<const float> out_scale = {};  ///< [1]; empty means 1.
};

/// out[i, :] (+)= W · x[select[i], :] (+ bias)
struct MatmulArgs {
  LaunchSite site;
  WeightMatrix weight;      ///< [n_out, n_in]
  const float* x;           ///< [n_rows, n_in]
  float* out;               ///< [n_selected, n_out]
  bool accumulate = false;  ///< Adds to out (a residual) instead of overwriting it.
  /// The rows of x to use, ascending; empty means all.
  std::span<const std::uint32_t> select = {};
  Leased<const float> bias = {};  ///< [n_out], added to the product first; empty means none.
};

/// Causal attention of every row over positions 0 … its own, or over the last `window` of them;
/// blocks supply keys and values, and no block before the window is opened. Query head h reads kv
/// head h / (n_heads / n_kv_heads).
struct AttentionArgs {
  KvLayer layout;
  const float* q;  ///< [n_rows, n_heads, head_dim]
  float* out;      ///< [n_rows, n_heads, value_dim]
  std::uint32_t n_heads;
  float scale;                                   ///< Multiplies the products of q and keys.
  std::span<const BlockTableView> block_tables;  ///< [n_sequences], of the layer's group
  /// The most positions that a row reads, its own included; 0: all.
  std::uint32_t window = 0;
  float softcap = 0.0F;  ///< Scores become softcap · tanh(score / softcap); 0: they stay.
  /// [n_heads]: a score per head that takes part in the softmax and has no value (Xiao et al. 2023,
  /// attention sinks); empty means none.
  Leased<const float> sinks = {};
  /// The matrix that multiplies `out` next, for whose sake a backend may also store `out` in
  /// another form; null: unknown.
  const WeightMatrix* next = nullptr;
};

/// Prepares queries, keys and values for attention, in this order: normalise each head of queries
/// and keys if the model has norm weights, and of values if `norms_values`; rotate the first
/// `rope_dim` elements of each head of queries and keys (Su et al. 2021); multiply queries by their
/// row's scale; write keys and values into the sequence's block at the row's position. Queries
/// change in place, and so may keys and values.
///
/// In a latent layer the norm of keys covers their first latent_dim elements, and the rotation the
/// last `rope_dim` ones. `v` is not read.
struct HeadsArgs {
  KvLayer layout;
  float* q;  ///< [n_rows, n_heads, head_dim]
  /// [n_rows, n_kv_heads, head_dim]. Both null: there are only queries, and nothing is written.
  float* k;
  float* v;  ///< Unused in a latent layer.
  std::uint32_t n_heads;
  Leased<const float> query_norm;  ///< [head_dim]; empty means none.
  Leased<const float> key_norm;    ///< [value_dim]; empty means none.
  bool norms_values = false;       ///< The norm of values has no weight.
  float epsilon;
  std::uint32_t rope_dim;  ///< 0: no rotation.
  RopeStyle style;
  const float* cos_sin;                          ///< [n_rows, rope_dim/2, 2]
  const float* query_scales = nullptr;           ///< [n_rows]; null means 1.
  bool uses_window_angles = false;               ///< cos_sin is StepInput::window_cos_sin.
  std::span<const BlockTableView> block_tables;  ///< [n_sequences], of the layer's group

  /// The first rotated element of a head.
  std::uint32_t rope_begin() const { return layout.is_latent() ? layout.head_dim - rope_dim : 0; }
};

/// gate = activation of gate and up, elementwise; SwiGLU is the usual one (Shazeer 2020).
struct SwiGluArgs {
  float* gate;      ///< [n_rows, width]
  const float* up;  ///< [n_rows, width]; may be gate; up_stride elements from row to row
  std::uint32_t width;
  Activation activation = Activation::SwiGlu;
  std::uint32_t up_stride = 0;  ///< 0 means width. Projections need 0.

  /// The elements from a row of `up` to the next.
  std::uint32_t stride() const { return up_stride != 0 ? up_stride : width; }
};

/// x = cap · tanh(x / cap), elementwise.
struct SoftcapArgs {
  float* x;  ///< [n_selected, width]
  std::uint32_t width;
  float cap;                              ///< Above 0.
  std::span<const std::uint32_t> select;  ///< The rows of the step that x has; empty means all.
};

/// Causal depthwise convolution of the rows of each sequence, and the gates around it:
///   in(r, c) = x[r, c] (· input_gate[r, c])
///   out[r, c] = f(bias[c] + Σ_t weight[c, t] · in(r - (n_taps - 1) + t, c)) (· output_gate[r, c])
/// Inputs before the step's first row of a sequence come from its state, which receives the latest
/// n_taps - 1 inputs. Order: numerics/recurrence.hpp.
struct ConvolutionArgs {
  static constexpr std::uint32_t kMaxTaps = 16;

  const float* x;                      ///< [n_rows, n_channels]
  const float* input_gate = nullptr;   ///< [n_rows, n_channels]; null: none.
  const float* output_gate = nullptr;  ///< [n_rows, n_channels]; null: none.
  float* out;                          ///< [n_rows, n_channels]; overlaps no input.
  std::uint32_t n_channels;
  std::uint32_t n_taps;           ///< 2 … kMaxTaps
  Leased<const float> weight;     ///< [n_channels, n_taps]; the last tap is the row's own.
  Leased<const float> bias = {};  ///< [n_channels]; empty means 0.
  bool applies_silu = false;      ///< f is silu; otherwise f(x) = x.
  StatePiece piece = {};          ///< [n_taps - 1, n_channels]
  std::span<const StateTableView> state_tables;  ///< [n_sequences]
};

/// Which matrix a recurrence adds to its state (numerics/recurrence.hpp).
enum class RecurrenceRule : std::uint8_t { Delta, Mamba2 };

/// Advances the state of every head over the rows of each sequence, in their order. Value head h
/// uses the keys and queries of a group.
struct RecurrenceArgs {
  RecurrenceRule rule;
  /// [n_rows, row_width]: queries and keys [n_groups, key_dim] each, and values [n_heads,
  /// value_dim], at these offsets. Queries and keys change in place.
  float* x;
  std::uint32_t row_width;
  std::uint32_t query_offset;
  std::uint32_t key_offset;
  std::uint32_t value_offset;
  std::uint32_t n_groups;  ///< Divides n_heads.
  std::uint32_t n_heads;
  std::uint32_t key_dim;
  std::uint32_t value_dim;
  /// Head h uses group h mod n_groups; otherwise h / (n_heads / n_groups).
  bool alternates_groups;
  float* steps;  ///< [n_rows, n_heads]: inputs of softplus; become the decays.
  /// [n_rows, n_heads]: with the delta rule inputs of a sigmoid; become the weights of the update.
  float* weights;
  Leased<const float> step_bias;       ///< [n_heads]
  Leased<const float> decay_rates;     ///< [n_heads]: a, below 0
  Leased<const float> skip = {};       ///< [n_heads]; empty means none.
  float epsilon;                       ///< Of the lengths of queries and keys, with the delta rule.
  float* out;                          ///< [n_rows, n_heads, value_dim]
  std::span<const StatePiece> pieces;  ///< [n_heads], each [key_dim, value_dim]
  std::span<const StateTableView> state_tables;  ///< [n_sequences]
};

/// Matmuls of the same rows of x. A norm or SwiGLU that computes these rows may precede them.
struct ProjectionArgs {
  static constexpr std::size_t kMaxMatmuls = 4;

  /// Null: none. Its `out` is the matmuls' x, one vector per row.
  const RmsNormArgs* norm = nullptr;
  /// Null: none. Its `gate` is the matmuls' x. Excludes `norm`.
  const SwiGluArgs* swiglu = nullptr;
  /// 1 … kMaxMatmuls matmuls with the same x, n_in and select. Their outputs overlap neither x nor
  /// the inputs of `norm` and `swiglu`.
  std::span<const MatmulArgs> matmuls;
  float softcap = 0.0F;  ///< Not 0: caps every product, as SoftcapArgs does.
};

/// down (+)= W_down · activation(W_gate · x, W_up · x)
struct FeedForwardArgs {
  const RmsNormArgs* norm = nullptr;  ///< Null: none. Its `out` is the x of `gate` and `up`.
  MatmulArgs gate;
  MatmulArgs up;    ///< x, n_out and `select` are those of `gate`. No weight: up is gate's product.
  MatmulArgs down;  ///< Its x is `gate.out`.
  Activation activation = Activation::SwiGlu;
};

/// How router scores become the probabilities of experts.
enum class ExpertGating : std::uint8_t { Softmax, Sigmoid };

/// Chooses the experts of each row and their weights (numerics/expert_routing.hpp).
struct ExpertRoutingArgs {
  const float* scores;  ///< [n_rows, n_experts]: router scores
  std::uint32_t n_experts;
  std::uint32_t n_used;  ///< 1 … n_experts
  /// True: weights are divided by their sum over the chosen experts. False: they are probabilities.
  bool normalize_expert_weights;
  std::uint32_t* chosen;  ///< [n_rows, n_used]: different experts, in the order of the choice
  float* weights;         ///< [n_rows, n_used]
  ExpertGating gating = ExpertGating::Softmax;
  /// [n_experts], added to probabilities for the choice only; empty means a choice by score.
  Leased<const float> selection_bias = {};
  float scale = 1.0F;  ///< Multiplies the weights.
  /// Neighbouring experts form groups of equal size. A row uses only the best n_groups_used ones.
  std::uint32_t n_groups = 1;  ///< Divides n_experts; 1 … kMaxExpertGroups.
  std::uint32_t n_groups_used = 1;
  /// [n_experts]: multiplies the weight of each expert, after `scale`; empty means 1.
  Leased<const float> expert_scales = {};
};
inline constexpr std::uint32_t kMaxExpertGroups = 32;

/// out[i, :] = W of item i's expert · x[i / items_per_x, :] (+ bias). An *item* is the k-th expert
/// of a row: item = row · n_used + k.
///
/// The same operator multiplies by one matrix per head: `chosen` is null then, and every row uses
/// all matrices in their order.
struct ExpertMatmulArgs {
  LaunchSite site;
  /// [n_experts · n_out, n_in]: the matrices are consecutive. With row groups, n_out is a multiple
  /// of kGroupRows.
  WeightMatrix weight;
  std::uint32_t n_experts;
  const std::uint32_t* chosen;  ///< [n_items]: the expert of each item; null: i mod n_experts.
  std::uint32_t n_items;
  const float* x;                 ///< [n_items / items_per_x, n_in]
  std::uint32_t items_per_x;      ///< n_used if the items of a row share a row of x, otherwise 1.
  float* out;                     ///< [n_items, n_out], out_stride apart
  Leased<const float> bias = {};  ///< [n_experts, n_out], added to the product; empty means none.
  std::uint32_t out_stride = 0;   ///< In elements, at least n_out; 0: n_out.

  std::uint32_t n_out() const { return weight.n_out / n_experts; }
  std::uint32_t stride() const { return out_stride != 0 ? out_stride : n_out(); }
  std::uint32_t expert_of(std::uint32_t item) const {
    return chosen != nullptr ? chosen[item] : item % n_experts;
  }
};

/// out[r, :] (+)= Σ_k weight(r, k) · x[r, k, :], k ascending, one fma each.
struct WeightedSumArgs {
  const float* x;        ///< [n_rows, n_terms, width]
  const float* weights;  ///< [n_rows, n_terms]
  float* out;            ///< [n_rows, width]
  std::uint32_t n_terms;
  std::uint32_t width;
  bool applies_sigmoid = false;  ///< True: weight(r, k) is the sigmoid of weights[r, k].
  bool accumulate = true;        ///< Adds to out (a residual) instead of overwriting it.
};

/// One of several pieces that are written into leased memory together.
struct LeasedPiece {
  Leased<std::byte> to;
  std::span<const std::byte> bytes;
  /// Stored after all others, as one store of 8 aligned bytes. It marks them complete.
  bool is_last = false;
};

/// A block to copy from one place of leased memory to another.
struct LeasedCopy {
  Leased<std::byte> to;
  Leased<const std::byte> from;
};

/// Copies blocks of one sequence. No byte is both read and written.
struct CopyBlocksArgs {
  std::uint32_t sequence = 0;  ///< Index in the gate set. Its leases own sources and targets.
  std::span<const LeasedCopy> copies;
  std::uint64_t block_size_bytes = 0;
};

/// Copies raw bytes into leased memory, for example weights.
struct CopyInArgs {
  LaunchSite site;
  Leased<std::byte> to;
  const std::byte* from;
  std::size_t size_bytes;
};

}  // namespace leasehold
