/// A model's weights in broker-owned memory, as operands of the backend.
///
/// Lifetime: matrices are handles into mappings that this object owns. It outlives every step that
/// uses them, and no part is restored during a step. Threads: the engine's, except `unmap`.
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
#include "kernels/model/weights_plan.hpp"

namespace leasehold {

/// The weights of a mixer with a recurrent state. Handles of absent weights are empty.
struct RecurrentWeights {
  WeightMatrix input;                    ///< [channels, n_embd], of the convolution
  WeightMatrix gate;                     ///< [n_values, n_embd]
  WeightMatrix output_gate;              ///< [n_values, n_embd]
  WeightMatrix steps;                    ///< [n_heads, n_embd]
  WeightMatrix update_weights;           ///< [n_heads, n_embd]
  Leased<const float> convolution;       ///< [channels, n_taps]
  Leased<const float> convolution_bias;  ///< [channels]
  Leased<const float> step_bias;         ///< [n_heads]
  Leased<const float> decay_rates;       ///< [n_heads]
  Leased<const float> skip;              ///< [n_heads]
  Leased<const float> norm;              ///< [head_dim], or of all heads of each group
  WeightMatrix output;                   ///< [n_embd, n_values]
};

/// Handles of absent weights are empty.
struct LayerWeights {
  Leased<const float> attention_norm;         ///< [n_embd], of the input
  WeightMatrix query;                         ///< [n_heads · head_dim, n_embd]
  WeightMatrix key;                           ///< [n_kv_heads · head_dim, n_embd]
  WeightMatrix value;                         ///< [n_kv_heads · head_dim, n_embd], or the key
  Leased<const float> query_bias;             ///< [n_heads · head_dim]
  Leased<const float> key_bias;               ///< [n_kv_heads · head_dim]
  Leased<const float> value_bias;             ///< [n_kv_heads · head_dim]
  Leased<const float> query_norm;             ///< [head_dim], or [n_heads · head_dim]
  Leased<const float> key_norm;               ///< [head_dim], or [n_kv_heads · head_dim]
  bool norms_all_heads = false;               ///< The two norms cover all heads together.
  Leased<const float> sinks;                  ///< [n_heads]
  WeightMatrix attention_gate;                ///< [n_heads · head_dim, n_embd]
  WeightMatrix attention_output;              ///< [n_embd, n_heads · head_dim]
  Leased<const float> attention_output_bias;  ///< [n_embd]
  Leased<const float> attention_output_norm;  ///< [n_embd], of what is added to the residual
  RecurrentWeights recurrent;                 ///< Instead of the attention.

  // Latent attention (kernels/model/latent_config.hpp), without `value` and `query_norm`. Queries
  // are computed from rows of query_rank elements, or of n_embd without latent_query.
  // `query` is [n_heads · unrotated_dim, …], and `key_norm` is [rank].
  WeightMatrix latent_query;              ///< [query_rank, n_embd]
  Leased<const float> latent_query_norm;  ///< [query_rank]
  WeightMatrix rotated_query;             ///< [n_heads · rope.dim, …]
  WeightMatrix head_keys;                 ///< [n_heads · rank, unrotated_dim]
  WeightMatrix head_values;               ///< [n_heads · value_dim, rank]

  Leased<const float> ffn_norm;         ///< [n_embd], of the input
  Leased<const float> ffn_output_norm;  ///< [n_embd], of what is added to the residual

  // The feed-forward of every row: the layer's own of width n_ff, or the shared expert of width
  // experts.n_shared_ff.
  WeightMatrix ffn_gate;  ///< [width, n_embd]
  WeightMatrix ffn_up;    ///< [width, n_embd]
  WeightMatrix ffn_down;  ///< [n_embd, width]

  WeightMatrix expert_router;                 ///< [n_experts, n_embd]
  Leased<const float> expert_selection_bias;  ///< [n_experts]
  WeightMatrix expert_gate;                   ///< [n_experts · experts.n_ff, n_embd]
  WeightMatrix expert_up;                     ///< [n_experts · experts.n_ff, n_embd]
  WeightMatrix expert_down;                   ///< [n_experts · n_embd, experts.n_ff]
  Leased<const float> expert_router_bias;     ///< [n_experts]
  Leased<const float> expert_gate_bias;       ///< [n_experts, experts.n_ff]
  Leased<const float> expert_up_bias;         ///< [n_experts, experts.n_ff]
  Leased<const float> expert_down_bias;       ///< [n_experts, n_embd]
  WeightMatrix shared_gate;                   ///< [1, n_embd]
  WeightMatrix latent_down;                   ///< [experts.n_latent, n_embd]
  WeightMatrix latent_up;                     ///< [n_embd, experts.n_latent]

  // Of experts beside a feed-forward.
  Leased<const float> dense_output_norm;   ///< [n_embd], of the result of the feed-forward
  Leased<const float> expert_input_norm;   ///< [n_embd]
  Leased<const float> expert_output_norm;  ///< [n_embd]
  Leased<const float> router_norm;         ///< [n_embd], of the input of the router
  Leased<const float> expert_scales;       ///< [n_experts]

  // Of the layer's embedding of tokens.
  WeightMatrix embedding_gate;         ///< [n_layer_embd, n_embd]
  WeightMatrix embedding_projection;   ///< [n_embd, n_layer_embd]
  Leased<const float> embedding_norm;  ///< [n_embd], of what is added to the residual

  Leased<const float> output_scale;  ///< [1], multiplies the residual after the layer
};

/// The embeddings of tokens that each layer has; empty in models without.
struct LayerEmbeddingWeights {
  WeightMatrix table;        ///< [n_vocab, n_layers · n_layer_embd]
  WeightMatrix projection;   ///< [n_layers · n_layer_embd, n_embd]
  Leased<const float> norm;  ///< [n_layer_embd], of the projection
};

LeaseId id_of(const LeaseDependency& lease);
/// Returns false once the lease is revoked. Threads: any.
bool is_live(const LeaseDependency& lease);

class Weights {
 public:
  /// The read-only mapping of one part and its engine lease.
  struct MappedPart {
    LeasedMapping mapping;
    LeaseDependency lease;
  };

  /// `mapped_parts` has one mapping per part of the plan, filled by `copy_weights`. The plan
  /// outlives this object. Errors: UntrustedSegment for a region that is too small; MissingWeight.
  static Result<Weights> bind(const WeightsPlan& plan, const ModelConfig& config,
                              std::vector<MappedPart> mapped_parts);

  const WeightsPlan& plan() const { return *plan_; }
  /// One per part, in plan order.
  std::span<const LeaseDependency> leases() const { return leases_; }
  /// Reads the lease words and returns the index of the first part whose lease is not live.
  std::optional<std::size_t> first_revoked_part() const;

  /// Replaces the mapping and the lease of a part. Matrices returned before are invalid then.
  /// Errors: UntrustedSegment; nothing changes in that case.
  Result<void> restore(std::size_t part, MappedPart fresh);

  /// Unmaps the part under this lease; waits while another thread unmaps a part. Returns false if
  /// no part has this lease. Threads: the engine's between steps, when no unit runs; any thread
  /// once the lease is fenced.
  bool unmap(LeaseId lease);

  const WeightMatrix& token_embedding() const { return token_embedding_; }
  const LayerEmbeddingWeights& layer_embeddings() const { return layer_embeddings_; }
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
  Result<void> keep_mapping(std::size_t part, MappedPart mapped_part);
  Result<void> bind_matrices();

  const WeightsPlan* plan_;
  ModelConfig config_;
  std::unique_ptr<Mapped> mapped_;
  std::vector<Leased<const std::byte>> bases_;  // [parts]
  std::vector<LeaseDependency> leases_;         // [parts]
  WeightMatrix token_embedding_;
  LayerEmbeddingWeights layer_embeddings_;
  std::vector<LayerWeights> layers_;
  Leased<const float> output_norm_;
  WeightMatrix output_;
};

/// Receives the progress of loading, in bytes.
using LoadProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

/// The destination of copied weights, and the gates and backend of the units that copy them.
struct WeightsTarget {
  const LeasedMapping* region = nullptr;
  const GateSet* gates = nullptr;
  Backend* backend = nullptr;
};

/// Copies every tensor of the layout from the file into the target through the launch gate.
/// Errors: those of reading the file; EngineLeaseFenced if the lease was revoked meanwhile.
Result<void> copy_weights(const GgufFile& file, const WeightsLayout& layout,
                          const WeightsTarget& target, const LoadProgress& progress);

}  // namespace leasehold
