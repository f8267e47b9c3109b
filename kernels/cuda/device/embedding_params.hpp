/// Parameters of the embedding lookup. C++20-clean.
#pragma once

#include "kernels/cuda/device/gate.hpp"

namespace leasehold::device {

struct EmbeddingParams {
  KernelGate gate;
  const std::byte* table;      ///< [n_vocab] rows of row_bytes, or their groups
  const std::int32_t* tokens;  ///< [n_rows]
  float* out;                  ///< [n_rows, n_embd]
  std::uint64_t row_bytes;
  TensorType type;
  BlockShape shape;  ///< The type's block shape.
  std::uint32_t n_vocab;
  std::uint32_t n_embd;
  std::uint32_t is_grouped;  ///< Not 0: the table has row groups.
  float scale = 1.0F;
};

}  // namespace leasehold::device
