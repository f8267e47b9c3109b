/// The numbers of a model: what its metadata says, checked against itself and against its tensors.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"
#include "kernels/op_args.hpp"
#include "worker/gguf/gguf.hpp"
#include "worker/model/rope_config.hpp"

namespace leasehold {

/// The experts of each layer. Without any, all of it is zero.
struct ExpertConfig {
  std::uint32_t n_experts;
  std::uint32_t n_used;           ///< By each row; at most n_experts.
  std::uint32_t n_ff;             ///< Of one expert.
  bool normalize_expert_weights;  ///< See ExpertRoutingArgs.

  bool operator==(const ExpertConfig&) const = default;
};

/// Every count but n_ff is at least 1. Sizes derived from two counts fit 32 bits.
struct ModelConfig {
  std::string name;  ///< general.name, or the architecture where a file has none. UTF-8.
  std::string architecture;
  std::uint32_t n_layers;
  std::uint32_t n_embd;
  std::uint32_t n_heads;
  std::uint32_t n_kv_heads;  ///< Divides n_heads.
  std::uint32_t head_dim;    ///< n_heads · head_dim need not be n_embd.
  std::uint32_t n_ff;        ///< Of what every row goes through: the layer's feed-forward, or the
                             ///< expert shared by all; 0 where there are chosen experts only.
  ExpertConfig experts;
  std::uint32_t n_vocab;    ///< Rows of the embedding, tokens of the tokenizer.
  std::uint32_t n_context;  ///< Positions the model was trained for and attends to.
  bool has_sliding_window;  ///< It was trained for more, but attends only so far back.
  RopeConfig rope;
  float rms_epsilon;
  bool tied_embeddings;  ///< token_embd.weight serves as output.weight.

  bool operator==(const ModelConfig&) const = default;
};

/// Errors: FileCorrupt for a key that is missing or contradicts the rest of the file; MissingWeight
/// without token_embd.weight; UnsupportedModel, naming it, for an architecture, a way of scaling
/// positions or anything else in the metadata that this build would compute wrongly, and for a
/// number beyond what it is made for.
Result<ModelConfig> read_config(const GgufFile& file);

}  // namespace leasehold
