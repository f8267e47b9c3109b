/// The numbers of a model: what its metadata says, checked against itself and against its tensors.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"
#include "kernels/op_args.hpp"
#include "worker/model/gguf.hpp"

namespace leasehold {

/// Every count is at least 1. Sizes derived from two counts fit 32 bits.
struct ModelConfig {
  std::string name;  ///< general.name, or the architecture where a file has none. UTF-8.
  std::string architecture;
  std::uint32_t n_layers;
  std::uint32_t n_embd;
  std::uint32_t n_heads;
  std::uint32_t n_kv_heads;  ///< Divides n_heads.
  std::uint32_t head_dim;    ///< n_heads · head_dim need not be n_embd.
  std::uint32_t n_ff;
  std::uint32_t n_vocab;    ///< Rows of the embedding, tokens of the tokenizer.
  std::uint32_t n_context;  ///< Positions the model was trained for.
  std::uint32_t rope_dim;   ///< Even, at most head_dim.
  float rope_base;
  RopeStyle rope_style;
  float rms_epsilon;
  bool tied_embeddings;  ///< token_embd.weight serves as output.weight.

  bool operator==(const ModelConfig&) const = default;
};

/// Errors: FileCorrupt for a key that is missing or contradicts the rest of the file; MissingWeight
/// without token_embd.weight; UnsupportedModel, naming it, for an architecture, a scaled rope, a
/// mixture of experts, or a number beyond what this build is made for.
Result<ModelConfig> read_config(const GgufFile& file);

}  // namespace leasehold
