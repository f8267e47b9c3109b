/// The supported model architectures, as one table. To add an architecture, add a row and, if it
/// has additional tensors, a list of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/op_args.hpp"

namespace leasehold {

/// Dimensions of tensors, computed from a ModelConfig.
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

/// The number of copies of a tensor in a layer, and whether it may be absent.
enum class Presence : std::uint8_t {
  Required,
  Optional,   ///< Used if the file has it.
  PerExpert,  ///< Required; one matrix per expert, concatenated in one tensor.
};

/// A tensor of a model. Vectors (one row) are always F32.
struct TensorSpec {
  std::string_view name;  ///< For tensors of a block: the part after "blk.N.".
  TensorDim columns;
  TensorDim rows;
  Presence presence = Presence::Required;
};

/// A layer has the tensors of `attention`, then of `feed_forward`, in layout order. Models with
/// experts have `experts` instead of `feed_forward`.
struct Architecture {
  std::string_view name;  ///< Value of general.architecture, and prefix of the metadata keys.
  RopeStyle rope_style;
  std::span<const TensorSpec> attention;
  std::span<const TensorSpec> feed_forward;  ///< Empty: models without experts are not supported.
  std::span<const TensorSpec> experts;       ///< Empty: models with experts are not supported.
  bool has_shared_expert = false;  ///< One more expert computes every row, scaled by a gate.
  /// The weights of a row's chosen experts are normalized to sum 1.
  bool normalize_expert_weights = false;
};

/// Returns null for an unsupported architecture.
const Architecture* find_architecture(std::string_view name);

/// "llama, qwen2, …", for messages.
std::string architecture_names();

}  // namespace leasehold
