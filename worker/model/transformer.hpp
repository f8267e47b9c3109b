/// The forward pass of the architectures in architecture.hpp over one step's rows.
///
/// What differs between them is in the config and in which weights there are: biases, norms of each
/// head, experts.
/// Source: Touvron et al. 2023 (LLaMA); grouped-query attention, Ainslie et al. 2023; Yang et al.
/// 2024 and 2025 (Qwen2, Qwen3); Jiang et al. 2024 (Mixtral).
/// Lifetime: the backend outlives it. Threads: one forward at a time.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "common/zeroed_array.hpp"
#include "kernels/backend.hpp"
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

class Transformer {
 public:
  struct Limits {
    std::uint32_t max_rows = 256;
    std::uint32_t max_logit_rows = 64;
  };
  /// What a backend must be ready for to run this model.
  static BackendLimits backend_limits(const ModelConfig& config, const Limits& limits);

  Transformer(const ModelConfig& config, KvType kv_type, Limits limits, Backend& backend);

  const KvLayout& kv_layout() const { return kv_layout_; }

  /// Runs every launch of the step, or stops after the first that found nobody live.
  /// Logits are valid for rows of the sequences that are live at the end.
  LaunchStatus forward(const Weights& weights, const ForwardInput& input);

  /// Of the i-th row in `logit_rows`, until the next call or step.
  std::span<const float> logits(std::uint32_t i) const;  // [n_vocab]
  /// What a device knows of that row already.
  std::optional<TopLogits> top_logits(std::uint32_t i) const { return backend_->top_logits(i); }

  /// Forgets every intermediate value since the last scrub, for when a sequence died.
  void scrub();

 private:
  class Pass;

  /// What a step computes on its way, in the backend's scratch.
  struct Scratch {
    float* x = nullptr;          // [max_rows, n_embd]
    float* normed = nullptr;     // [max_rows, n_embd]
    float* q = nullptr;          // [max_rows, n_heads, head_dim]
    float* k = nullptr;          // [max_rows, n_kv_heads, head_dim]
    float* v = nullptr;          // [max_rows, n_kv_heads, head_dim]
    float* attention = nullptr;  // [max_rows, n_heads, head_dim]
    float* gate = nullptr;       // [max_rows, n_ff]
    float* up = nullptr;         // [max_rows, n_ff]
    float* logits = nullptr;     // [max_logit_rows, n_vocab]

    // Of models with experts.
    float* scores = nullptr;          // [max_rows, n_experts]
    std::uint32_t* chosen = nullptr;  // [max_rows, n_used]
    float* expert_weights = nullptr;  // [max_rows, n_used]
    float* expert_gate = nullptr;     // [max_rows, n_used, experts.n_ff]
    float* expert_up = nullptr;       // [max_rows, n_used, experts.n_ff]
    float* expert_out = nullptr;      // [max_rows, n_used, n_embd]; also the shared expert's
    float* shared_gate = nullptr;     // [max_rows]

    /// Calls `take(pointer, elements of a row)` for each of them that `config` needs.
    template <class Take>
    void each(const ModelConfig& config, Take&& take);
  };
  static std::size_t rows_of(const Scratch& scratch, const Limits& limits, const void* pointer);
  struct Buffer {
    std::byte* at;
    std::size_t row_bytes;
  };

  ModelConfig config_;
  KvLayout kv_layout_;
  Limits limits_;
  Backend* backend_;
  RopeAngles angles_;
  Scratch scratch_;
  std::vector<Buffer> buffers_;  // all of the scratch
  ZeroedArray<float> cos_sin_;   // [max_rows, rope.dim / 2, 2], the host's
  std::size_t used_rows_ = 0;    // rows of the scratch written since the last scrub
  std::size_t used_logit_rows_ = 0;
};

}  // namespace leasehold
