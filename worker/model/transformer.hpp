/// The forward pass over the rows of one step, for all architectures in
/// kernels/model/architecture.hpp.
///
/// Architectures differ in the config and in which weights are present (biases, norms, sinks,
/// experts).
/// Source: Touvron et al. 2023 (LLaMA); grouped-query attention, Ainslie et al. 2023; Yang et al.
/// 2024 and 2025 (Qwen2, Qwen3); Jiang et al. 2024 (Mixtral); Gemma Team 2024 and 2025; OpenAI 2025
/// (gpt-oss). Of the other families: llama.cpp, src/models.
/// Lifetime: the backend outlives the transformer. Threads: one forward at a time.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "common/zeroed_array.hpp"
#include "kernels/backend.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/step_buffers.hpp"
#include "kernels/numerics/rope.hpp"
#include "worker/model/adapter_matrices.hpp"
#include "worker/model/weights.hpp"

namespace leasehold {

/// The input of one step.
struct ForwardInput {
  const GateSet* gates = nullptr;
  std::span<const RowRef> rows;                  ///< [n_rows]
  std::span<const std::int32_t> tokens;          ///< [n_rows], each in [0, n_vocab)
  std::span<const BlockTableView> block_tables;  ///< [kv_layout().n_groups(), n_sequences]
  std::span<const std::uint32_t> logit_rows;     ///< Rows that need logits, ascending.
  /// Rows whose hidden states are read, ascending; none of them has logits.
  std::span<const std::uint32_t> hidden_rows = {};
  /// [n_sequences]; empty for models without recurrent state.
  std::span<const StateTableView> state_tables = {};
  /// [n_sequences], null for those without an adapter; empty if no sequence has one. Targets that a
  /// layer lacks have rank 0.
  std::span<const AdapterMatrices* const> adapters = {};
};

class Transformer {
 public:
  using Limits = StepLimits;
  /// The limits that a backend must support for this model.
  static BackendLimits backend_limits(const ModelConfig& config, const Limits& limits);

  Transformer(const ModelConfig& config, KvType kv_type, Limits limits, Backend& backend);

  const KvLayout& kv_layout() const { return kv_layout_; }
  const StateLayout& state_layout() const { return state_layout_; }

  /// Lets the backend prepare steps under the engine leases of `gates`, without running one.
  /// Precondition: `gates` has a sequence. Returns the number of step shapes prepared.
  std::size_t prepare_steps(const Weights& weights, const GateSet& gates);

  /// Runs all launches of the step, or stops after the first launch without a live sequence.
  /// Logits are valid for rows of sequences that are live at the end.
  LaunchStatus forward(const Weights& weights, const ForwardInput& input);

  /// Logits of the i-th row in `logit_rows`, valid until the next call or step.
  std::span<const float> logits(std::uint32_t i) const;  // [n_vocab]
  /// The most rows that one call of `hidden` may return.
  std::uint32_t most_hidden() const {
    return std::max(1u, std::max(config_.n_vocab, config_.n_embd) / config_.n_embd);
  }
  /// The states of `count` rows of the step from `first_row` on, after the output norm and without
  /// the scale of the logits. All of them are in `hidden_rows`. Valid until the next call or step.
  std::span<const float> hidden(std::uint32_t first_row,
                                std::uint32_t count) const;  // [count, n_embd]
  /// The largest logits of that row, if the backend computed them.
  std::optional<TopLogits> top_logits(std::uint32_t i) const { return backend_->top_logits(i); }

  /// Overwrites all intermediate values since the last scrub, after a sequence was revoked.
  void scrub();

 private:
  class Pass;

  /// The angles of the rows of a step, for layers that rotate alike.
  struct AngleTable {
    RopeAngles angles;
    ZeroedArray<float> cos_sin;  // [max_rows, rope.dim / 2, 2], on the host

    AngleTable(const RopeConfig& rope, std::uint32_t n_context, std::uint32_t max_rows)
        : angles(rope_angles(rope, n_context)), cos_sin(std::size_t{max_rows} * rope.dim) {}
    std::span<const float> fill(std::span<const RowRef> rows);
  };

  ModelConfig config_;
  KvLayout kv_layout_;
  StateLayout state_layout_;
  Limits limits_;
  Backend* backend_;
  std::uint32_t most_between_;  // see row_range.hpp
  StepBuffers scratch_;
  AngleTable angles_;
  std::optional<AngleTable> window_angles_;  // of layers with a window, if they have their own
  ZeroedArray<float> query_scales_;          // [max_rows], or empty
  Limits used_{0, 0};                        // rows of the scratch written since the last scrub
};

}  // namespace leasehold
