/// The model architectures this build computes, one table row each. A new one is a row here and,
/// when it has tensors of its own, a list of them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/op_args.hpp"

namespace leasehold {

/// Lengths that a ModelConfig gives.
enum class Width : std::uint8_t {
  One,
  Embedding,    ///< n_embd
  Query,        ///< n_heads · head_dim
  KeyValue,     ///< n_kv_heads · head_dim
  FeedForward,  ///< n_ff
  Vocabulary,   ///< n_vocab
};

/// A tensor a model must have. Vectors (one row) are always F32.
struct TensorRule {
  std::string_view name;  ///< Of a block's tensor: what follows "blk.N.".
  Width columns;
  Width rows;
};

struct Architecture {
  std::string_view name;  ///< As general.architecture says it, and the prefix of its metadata keys.
  RopeStyle rope_style;
  std::span<const TensorRule> block_tensors;  ///< Of every layer, in layout order.
};

/// Null for an architecture this build does not compute.
const Architecture* find_architecture(std::string_view name);

}  // namespace leasehold
