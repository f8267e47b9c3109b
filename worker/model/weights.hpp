/// A model's weights as they lie in broker-owned memory, ready for the operators.
///
/// Lifetime: matrices are handles into the mappings this object owns; it must outlive every step
/// that uses them, and no part is restored during one. Threads: the engine's, but for `unmap`.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "common/ids.hpp"
#include "ipc/region/mapping.hpp"
#include "ipc/segment/gate_set.hpp"
#include "kernels/backend.hpp"
#include "worker/model/weights_plan.hpp"

namespace leasehold {

/// Handles of what a model does not have are empty.
struct LayerWeights {
  Leased<const float> attention_norm;         ///< [n_embd]
  WeightMatrix query;                         ///< [n_heads · head_dim, n_embd]
  WeightMatrix key;                           ///< [n_kv_heads · head_dim, n_embd]
  WeightMatrix value;                         ///< [n_kv_heads · head_dim, n_embd]
  Leased<const float> query_bias;             ///< [n_heads · head_dim]
  Leased<const float> key_bias;               ///< [n_kv_heads · head_dim]
  Leased<const float> value_bias;             ///< [n_kv_heads · head_dim]
  Leased<const float> query_norm;             ///< [head_dim]
  Leased<const float> key_norm;               ///< [head_dim]
  WeightMatrix attention_output;              ///< [n_embd, n_heads · head_dim]
  Leased<const float> attention_output_bias;  ///< [n_embd]
  Leased<const float> ffn_norm;               ///< [n_embd]

  // What every row goes through: the layer's own, or beside experts the one shared by all.
  WeightMatrix ffn_gate;  ///< [n_ff, n_embd]
  WeightMatrix ffn_up;    ///< [n_ff, n_embd]
  WeightMatrix ffn_down;  ///< [n_embd, n_ff]

  WeightMatrix expert_router;  ///< [n_experts, n_embd]
  WeightMatrix expert_gate;    ///< [n_experts · experts.n_ff, n_embd]
  WeightMatrix expert_up;      ///< [n_experts · experts.n_ff, n_embd]
  WeightMatrix expert_down;    ///< [n_experts · n_embd, experts.n_ff]
  WeightMatrix shared_gate;    ///< [1, n_embd]
};

class Weights {
 public:
  /// Where one part lies, read-only, and the engine lease that covers it.
  struct MappedPart {
    LeasedMapping mapping;
    LeaseDependency lease;
  };

  /// `mapped_parts` go with the plan's parts, one each, filled by `copy_weights`. The plan outlives
  /// this. Errors: UntrustedSegment for a region that is too small; MissingWeight.
  static Result<Weights> bind(const WeightsPlan& plan, const ModelConfig& config,
                              std::vector<MappedPart> mapped_parts);

  const WeightsPlan& plan() const { return *plan_; }
  /// One for each part, in the plan's order.
  std::span<const LeaseDependency> leases() const { return leases_; }
  /// The first part whose lease says no, by its place in the plan; reads the words now.
  std::optional<std::size_t> first_revoked_part() const;

  /// Puts a part under a fresh lease, elsewhere. Matrices had from here before are of no use then.
  /// Errors: UntrustedSegment; then nothing has changed.
  Result<void> restore(std::size_t part, MappedPart fresh);

  /// Unmaps what lies under this lease, which is fenced: no unit touches it any more. Any thread.
  /// False when nothing does.
  bool unmap(LeaseId lease);

  const WeightMatrix& token_embedding() const { return token_embedding_; }
  const std::vector<LayerWeights>& layers() const { return layers_; }
  Leased<const float> output_norm() const { return output_norm_; }
  const WeightMatrix& output() const { return output_; }

 private:
  struct Mapped {
    std::mutex mutex;
    std::map<LeaseId, LeasedMapping> by_lease;
  };

  Weights(const WeightsPlan& plan, const ModelConfig& config)
      : plan_(&plan), config_(config), mapped_(std::make_unique<Mapped>()) {}
  Result<void> hold(std::size_t part, MappedPart mapped_part);
  Result<void> bind_matrices();

  const WeightsPlan* plan_;
  ModelConfig config_;
  std::unique_ptr<Mapped> mapped_;
  std::vector<Leased<const std::byte>> bases_;  // [parts]
  std::vector<LeaseDependency> leases_;         // [parts]
  WeightMatrix token_embedding_;
  std::vector<LayerWeights> layers_;
  Leased<const float> output_norm_;
  WeightMatrix output_;
};

/// Told how far loading is, in bytes.
using LoadProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

/// Copies every tensor of the layout from the file into `region` through the launch door.
/// Errors: what reading the file gives; EngineLeaseFenced when the lease was taken away meanwhile.
Result<void> copy_weights(const GgufFile& file, const WeightsLayout& layout,
                          const LeasedMapping& region, const GateSet& gates, Backend& backend,
                          const LoadProgress& progress);

}  // namespace leasehold
