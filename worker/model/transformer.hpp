/// The forward pass of the architectures in architecture.hpp over one step's rows.
///
/// What differs between them is in the config and in which weights there are: biases, norms of each
/// head, experts.
/// Source: Touvron et al. 2023 (LLaMA); grouped-query attention, Ainslie et al. 2023; Yang et al.
/// 2024 and 2025 (Qwen2, Qwen3); Jiang et al. 2024 (Mixtral).
/// Lifetime: the backend outlives it. Threads: one forward at a time.
#pragma once

#include <span>

#include "common/zeroed_array.hpp"
#include "kernels/backend.hpp"
#include "kernels/expert_groups.hpp"
#include "kernels/numerics/rope.hpp"
#include "worker/model/config.hpp"
#include "worker/model/weights.hpp"

namespace leasehold {

/// What a step computes.
struct ForwardInput {
  const GateSet* gates = nullptr;
  std::span<const RowRef> rows;                  ///< [n_rows]
  std::span<const std::int32_t> tokens;          ///< [n_rows], each in [0, n_vocab)
  std::span<const BlockTableView> block_tables;  ///< [n_sequences]
  std::span<const std::uint32_t> logit_rows;     ///< Rows whose logits are wanted, ascending.
};

/// What a backend must be ready for to run this model, with as many rows in a step.
BackendLimits backend_limits(const ModelConfig& config, std::uint32_t max_rows);

class Transformer {
 public:
  struct Limits {
    std::uint32_t max_rows = 256;
    std::uint32_t max_logit_rows = 64;
  };
  Transformer(const ModelConfig& config, KvType kv_type, Limits limits, Backend& backend);

  const KvLayout& kv_layout() const { return kv_layout_; }

  /// Runs every launch of the step, or stops after the first that found nobody live.
  /// Logits are valid for rows of the sequences that are live at the end.
  LaunchStatus forward(const Weights& weights, const ForwardInput& input);

  /// Of the i-th row in `logit_rows`.
  std::span<const float> logits(std::uint32_t i) const;  // [n_vocab]

  /// Forgets every intermediate value since the last scrub, for when a sequence died.
  void scrub();

 private:
  class Pass;
  struct Scratch {
    explicit Scratch(const ModelConfig& config, const Limits& limits);

    ZeroedArray<float> x;          // [max_rows, n_embd]
    ZeroedArray<float> normed;     // [max_rows, n_embd]
    ZeroedArray<float> q;          // [max_rows, n_heads, head_dim]
    ZeroedArray<float> k;          // [max_rows, n_kv_heads, head_dim]
    ZeroedArray<float> v;          // [max_rows, n_kv_heads, head_dim]
    ZeroedArray<float> attention;  // [max_rows, n_heads, head_dim]
    ZeroedArray<float> gate;       // [max_rows, n_ff]
    ZeroedArray<float> up;         // [max_rows, n_ff]
    ZeroedArray<float> cos_sin;    // [max_rows, rope.dim / 2, 2]
    ZeroedArray<float> logits;     // [max_logit_rows, n_vocab]

    // Of models with experts.
    ZeroedArray<float> scores;          // [max_rows, n_experts]
    ZeroedArray<std::uint32_t> chosen;  // [max_rows, n_used]
    ZeroedArray<float> expert_weights;  // [max_rows, n_used]
    ZeroedArray<float> expert_gate;     // [max_rows, n_used, experts.n_ff]
    ZeroedArray<float> expert_up;       // [max_rows, n_used, experts.n_ff]
    ZeroedArray<float> expert_out;      // [max_rows, n_used, n_embd]; also the shared expert's
    ZeroedArray<float> shared_gate;     // [max_rows]
    ExpertGroups groups;
  };

  ModelConfig config_;
  KvLayout kv_layout_;
  Limits limits_;
  Backend* backend_;
  RopeAngles angles_;
  Scratch scratch_;
  std::size_t used_rows_ = 0;  // rows of the scratch written since the last scrub
  std::size_t used_logit_rows_ = 0;
};

}  // namespace leasehold
