/// out[r, :] = table[tokens[r], :]; one thread per element.
#include "kernels/cuda/device/embedding_params.hpp"
#include "kernels/cuda/device/gate.cuh"
#include "kernels/quant/element.hpp"

namespace leasehold::device {

/// Element i of a row of the table.
__device__ __forceinline__ float table_element(const EmbeddingParams& p, const std::byte* row,
                                               std::uint32_t i) {
  if (p.type == TensorType::F32) return reinterpret_cast<const float*>(row)[i];
  const std::byte* block = row + std::size_t{i / p.shape.elements} * p.shape.size_bytes;
  return block_element(p.type, block, i % p.shape.elements);
}

/// Grid: columns / 256, rows.
LEASEHOLD_KERNEL(lh_embedding, EmbeddingParams, 256) {
  if (engine_is_stopped(p.gate)) return;
  const std::uint32_t row = blockIdx.y;
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= row_count(p.gate) || i >= p.n_embd) return;
  const auto token = static_cast<std::uint32_t>(p.tokens[row]);
  // A token outside the vocabulary must not read beyond the table. It gives NaN, which sampling
  // detects.
  const float value = token < p.n_vocab
                          ? table_element(p, p.table + std::size_t{token} * p.row_bytes, i)
                          : __uint_as_float(0x7fc00000);
  p.out[std::size_t{row} * p.n_embd + i] = value;
}

}  // namespace leasehold::device
