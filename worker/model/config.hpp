/// The dimensions of a model from its metadata, checked for consistency and against its tensors.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"
#include "kernels/op_args.hpp"
#include "worker/gguf/gguf.hpp"
#include "worker/model/rope_config.hpp"

namespace leasehold {

/// The experts of each layer. All zero for models without experts.
struct ExpertConfig {
  std::uint32_t n_experts;
  std::uint32_t n_used;           ///< Per row; at most n_experts.
  std::uint32_t n_ff;             ///< Of one expert.
  bool normalize_expert_weights;  ///< See ExpertRoutingArgs.

  bool operator==(const ExpertConfig&) const = default;
};

/// Every count except n_ff is at least 1. Products of two counts fit in 32 bits.
struct ModelConfig {
  std::string name;  ///< general.name made printable, or the architecture if the file has none.
  std::string architecture;
  std::uint32_t n_layers;
  std::uint32_t n_embd;
  std::uint32_t n_heads;
  std::uint32_t n_kv_heads;  ///< Divides n_heads.
  std::uint32_t head_dim;    ///< n_heads · head_dim need not be n_embd.
  std::uint32_t n_ff;  ///< Of the feed-forward that computes every row: the layer's own or the
                       ///< shared expert. 0 if all experts are chosen per row.
  ExpertConfig experts;
  std::uint32_t n_vocab;    ///< Rows of the embedding, tokens of the tokenizer.
  std::uint32_t n_context;  ///< Positions that the model was trained for and attends to, or fewer.
  bool has_sliding_window;  ///< n_context is the window; the training context is longer.
  RopeConfig rope;
  float rms_epsilon;
  bool tied_embeddings;  ///< token_embd.weight is also the output matrix.

  bool operator==(const ModelConfig&) const = default;
};

/// Errors: FileCorrupt for a key that is missing or inconsistent; MissingWeight without
/// token_embd.weight; UnsupportedModel, naming the key, for an architecture, a scaling of positions
/// or other metadata that this build would compute wrongly, and for numbers beyond its limits.
Result<ModelConfig> read_config(const GgufFile& file);

}  // namespace leasehold
