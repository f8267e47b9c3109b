/// A model's weights as they lie in broker-owned memory, ready for the operators.
///
/// Lifetime: matrices are handles into the mapping this object owns; it must outlive every step
/// that uses them. Threads: read-only after creation.
#pragma once

#include <functional>
#include <vector>

#include "ipc/gate_set.hpp"
#include "ipc/region/mapping.hpp"
#include "kernels/backend.hpp"
#include "worker/model/weights_layout.hpp"

namespace leasehold {

struct LayerWeights {
  Leased<const float> attention_norm;  ///< [n_embd]
  WeightMatrix query;                  ///< [n_heads · head_dim, n_embd]
  WeightMatrix key;                    ///< [n_kv_heads · head_dim, n_embd]
  WeightMatrix value;                  ///< [n_kv_heads · head_dim, n_embd]
  WeightMatrix attention_output;       ///< [n_embd, n_heads · head_dim]
  Leased<const float> ffn_norm;        ///< [n_embd]
  WeightMatrix ffn_gate;               ///< [n_ff, n_embd]
  WeightMatrix ffn_up;                 ///< [n_ff, n_embd]
  WeightMatrix ffn_down;               ///< [n_embd, n_ff]
};

class Weights {
 public:
  /// `mapping` holds a region filled by `fill_weights` with the same layout, read-only.
  /// `lease` is the engine lease that covers it.
  static Result<Weights> bind(LeasedMapping mapping, const WeightsLayout& layout,
                              const ModelConfig& config, LeaseDependency lease);

  const LeaseDependency& lease() const { return lease_; }
  const WeightMatrix& token_embedding() const { return token_embedding_; }
  const std::vector<LayerWeights>& layers() const { return layers_; }
  Leased<const float> output_norm() const { return output_norm_; }
  const WeightMatrix& output() const { return output_; }

 private:
  Weights(LeasedMapping mapping, LeaseDependency lease)
      : mapping_(std::move(mapping)), lease_(lease) {}

  LeasedMapping mapping_;
  LeaseDependency lease_;
  WeightMatrix token_embedding_;
  std::vector<LayerWeights> layers_;
  Leased<const float> output_norm_;
  WeightMatrix output_;
};

/// Told how far loading is, in bytes.
using LoadProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

/// Copies every tensor of the file into `region` through the launch door.
/// Errors: what reading the file gives; EngineLeaseFenced when the lease was taken away meanwhile.
Result<void> fill_weights(const GgufFile& file, const WeightsLayout& layout,
                          const LeasedMapping& region, const GateSet& gates, Backend& backend,
                          const LoadProgress& progress);

}  // namespace leasehold
