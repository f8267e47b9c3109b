/// The forward pass of the Llama architecture over one step's rows.
///
/// Source: Touvron et al. 2023 (LLaMA); grouped-query attention, Ainslie et al. 2023.
/// Lifetime: the backend outlives it. Threads: one forward at a time.
#pragma once

#include <span>
#include <vector>

#include "kernels/backend.hpp"
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
    std::vector<float> x;          // [max_rows, n_embd]
    std::vector<float> normed;     // [max_rows, n_embd]
    std::vector<float> q;          // [max_rows, n_heads, head_dim]
    std::vector<float> k;          // [max_rows, n_kv_heads, head_dim]
    std::vector<float> v;          // [max_rows, n_kv_heads, head_dim]
    std::vector<float> attention;  // [max_rows, n_heads, head_dim]
    std::vector<float> gate;       // [max_rows, n_ff]
    std::vector<float> up;         // [max_rows, n_ff]
    std::vector<float> cos_sin;    // [max_rows, rope_dim / 2, 2]
    std::vector<float> logits;     // [max_logit_rows, n_vocab]
  };

  ModelConfig config_;
  KvLayout kv_layout_;
  Limits limits_;
  Backend* backend_;
  std::vector<double> rope_frequencies_;
  Scratch scratch_;
  std::size_t used_rows_ = 0;  // rows of the scratch written since the last scrub
  std::size_t used_logit_rows_ = 0;
};

}  // namespace leasehold
