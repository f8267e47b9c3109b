/// The rows that a model file has of a tensor.
///
/// llama.cpp's converter may join the queries, keys and values of a layer with --fuse-qkv: a tensor
/// attn_qkv has the rows of attn_q, then those of attn_k and attn_v, and a bias likewise their
/// elements. Files of any architecture with such tensors may be of this form, except those with
/// latent attention.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/gguf/gguf.hpp"

namespace leasehold {

/// Finds a tensor and checks its shape. Errors: MissingWeight; FileCorrupt for another shape.
Result<const GgufTensor*> find_tensor(const GgufFile& file, const std::string& name,
                                      std::uint32_t rows, std::uint32_t columns);

/// Whether the file has a tensor, or its rows among those of a joined one.
bool has_tensor(const GgufFile& file, const ModelConfig& config, const std::string& name);

struct FileRows {
  const GgufTensor* tensor;
  std::uint32_t first = 0;  ///< In a joined tensor; of a bias the first element.
  bool is_joined = false;
};

/// Finds the rows of tensor `name` of a layer, or of no layer. Errors: those of find_tensor.
Result<FileRows> find_rows(const GgufFile& file, const ModelConfig& config, std::uint32_t layer,
                           const std::string& name, std::uint32_t rows, std::uint32_t columns);

}  // namespace leasehold
