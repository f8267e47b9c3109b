/// The model architectures this build computes, one table row each. A new one is a row here and,
/// when it has tensors of its own, a list of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/op_args.hpp"

namespace leasehold {

/// Lengths that a ModelConfig gives.
enum class TensorDim : std::uint8_t {
  One,
  Embedding,          ///< n_embd
  Query,              ///< n_heads · head_dim
  KeyValue,           ///< n_kv_heads · head_dim
  Head,               ///< head_dim
  FeedForward,        ///< n_ff
  Experts,            ///< experts.n_experts
  ExpertFeedForward,  ///< experts.n_ff
  Vocabulary,         ///< n_vocab
};

/// How many of a tensor there are in a layer, and whether a file may leave it out.
enum class Presence : std::uint8_t {
  Required,
  Optional,   ///< Used where a file has it.
  PerExpert,  ///< Required; one matrix for each expert, one after the other in one tensor.
};

/// A tensor of a model. Vectors (one row) are always F32.
struct TensorSpec {
  std::string_view name;  ///< Of a block's tensor: what follows "blk.N.".
  TensorDim columns;
  TensorDim rows;
  Presence presence = Presence::Required;
};

/// A layer is its attention's tensors and then its feed-forward's, in layout order. A model whose
/// metadata counts experts has those of `experts` instead of `feed_forward`.
struct Architecture {
  std::string_view name;  ///< As general.architecture says it, and the prefix of its metadata keys.
  RopeStyle rope_style;
  std::span<const TensorSpec> attention;
  std::span<const TensorSpec> feed_forward;  ///< Empty: only with experts.
  std::span<const TensorSpec> experts;       ///< Empty: never with experts.
  bool has_shared_expert = false;            ///< One that every row goes through, behind a gate.
  bool normalize_expert_weights = false;     ///< Of the experts a row was sent to.
};

/// Null for an architecture this build does not compute.
const Architecture* find_architecture(std::string_view name);

/// "llama, qwen2, …", for messages.
std::string architecture_names();

}  // namespace leasehold
