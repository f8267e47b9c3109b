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
#include "kernels/quant/tensor_type.hpp"

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

/// The blocks of one sequence: block i holds positions [16i, 16i + 16).
using BlockTableView = std::span<const Leased<std::byte>>;

/// The input of a step. The backend receives it before the launches, whose arguments refer to parts
/// of it. All of it is host memory and does not change until the step is finished.
struct StepInput {
  const GateSet* gates = nullptr;
  std::span<const RowRef> rows;                  ///< [n_rows]
  std::span<const std::int32_t> tokens;          ///< [n_rows], each in [0, n_vocab)
  std::span<const BlockTableView> block_tables;  ///< [n_sequences]
  std::span<const std::uint32_t> logit_rows;     ///< Rows that need logits, ascending.
  std::span<const float> cos_sin;  ///< [n_rows, rope_dim/2, 2] for each row's own position
  std::span<const float> query_scales = {};  ///< [n_rows]; empty means 1.
  /// The same as cos_sin for layers with a window; empty if they rotate like the others.
  std::span<const float> window_cos_sin = {};
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

/// out (+)= (x · (scale / sqrt(dot(x, x) / width + epsilon))) · weight, per row (Zhang & Sennrich
/// 2019).
struct RmsNormArgs {
  LaunchSite site;
  const float* x;              ///< [n_rows, width]
  Leased<const float> weight;  ///< [width]
  float* out;                  ///< [n_rows, width]; may be x
  std::uint32_t width;
  float epsilon;
  float scale = 1.0F;
  bool accumulate = false;  ///< Adds to out (a residual) instead of overwriting it.
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
  float* out;      ///< [n_rows, n_heads, head_dim]
  std::uint32_t n_heads;
  float scale;                                   ///< Multiplies the products of q and keys.
  std::span<const BlockTableView> block_tables;  ///< [n_sequences]
  /// The most positions that a row reads, its own included; 0: all.
  std::uint32_t window = 0;
  float softcap = 0.0F;  ///< Scores become softcap · tanh(score / softcap); 0: they stay.
  /// [n_heads]: a score per head that takes part in the softmax and has no value (Xiao et al. 2023,
  /// attention sinks); empty means none.
  Leased<const float> sinks = {};
};

/// Prepares queries, keys and values for attention, in this order: normalise each head of queries
/// and keys if the model has norm weights; rotate the first `rope_dim` elements of each head (Su et
/// al. 2021); multiply queries by their row's scale; write keys and values into the sequence's
/// block at the row's position. Queries change in place, and so may keys.
struct HeadsArgs {
  KvLayer layout;
  float* q;  ///< [n_rows, n_heads, head_dim]
  float* k;  ///< [n_rows, n_kv_heads, head_dim]
  float* v;  ///< [n_rows, n_kv_heads, head_dim]
  std::uint32_t n_heads;
  Leased<const float> query_norm;  ///< [head_dim]; empty means none.
  Leased<const float> key_norm;    ///< [head_dim]; empty means none.
  float epsilon;
  std::uint32_t rope_dim;  ///< 0: no rotation.
  RopeStyle style;
  const float* cos_sin;                          ///< [n_rows, rope_dim/2, 2]
  const float* query_scales = nullptr;           ///< [n_rows]; null means 1.
  bool uses_window_angles = false;               ///< cos_sin is StepInput::window_cos_sin.
  std::span<const BlockTableView> block_tables;  ///< [n_sequences]
};

/// gate = activation of gate and up, elementwise; SwiGLU is the usual one (Shazeer 2020).
struct SwiGluArgs {
  float* gate;      ///< [n_rows, width]
  const float* up;  ///< [n_rows, width]
  std::uint32_t width;
  Activation activation = Activation::SwiGlu;
};

/// x = cap · tanh(x / cap), elementwise.
struct SoftcapArgs {
  float* x;  ///< [n_selected, width]
  std::uint32_t width;
  float cap;                              ///< Above 0.
  std::span<const std::uint32_t> select;  ///< The rows of the step that x has; empty means all.
};

/// Matmuls of the same rows of x. A norm or SwiGLU that computes these rows may precede them.
struct ProjectionArgs {
  static constexpr std::size_t kMaxMatmuls = 3;

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
  MatmulArgs up;    ///< x, n_out and `select` are those of `gate`.
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
};

/// out[i, :] = W of item i's expert · x[i / items_per_x, :] (+ bias). An *item* is the k-th expert
/// of a row: item = row · n_used + k.
struct ExpertMatmulArgs {
  LaunchSite site;
  /// [n_experts · n_out, n_in]: the matrices are consecutive. With row groups, n_out is a multiple
  /// of kGroupRows.
  WeightMatrix weight;
  std::uint32_t n_experts;
  const std::uint32_t* chosen;  ///< [n_items]: the expert of each item.
  std::uint32_t n_items;
  const float* x;                 ///< [n_items / items_per_x, n_in]
  std::uint32_t items_per_x;      ///< n_used if the items of a row share a row of x, otherwise 1.
  float* out;                     ///< [n_items, n_out]
  Leased<const float> bias = {};  ///< [n_experts, n_out], added to the product; empty means none.

  std::uint32_t n_out() const { return weight.n_out / n_experts; }
};

/// out[r, :] += Σ_k weight(r, k) · x[r, k, :], k ascending, one fma each.
struct WeightedSumArgs {
  const float* x;        ///< [n_rows, n_terms, width]
  const float* weights;  ///< [n_rows, n_terms]
  float* out;            ///< [n_rows, width]
  std::uint32_t n_terms;
  std::uint32_t width;
  bool applies_sigmoid = false;  ///< True: weight(r, k) is the sigmoid of weights[r, k].
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
