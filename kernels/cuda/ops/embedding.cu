/// out[r, :] = table[tokens[r], :] · scale; one thread per element.
#include "kernels/cuda/device/block_element.cuh"
#include "kernels/cuda/device/embedding_params.hpp"
#include "kernels/cuda/device/row_groups.cuh"

namespace leasehold::device {

/// Element i of a row of the table. Precondition: token < n_vocab.
__device__ __forceinline__ float table_element(const EmbeddingParams& p, std::uint32_t token,
                                               std::uint32_t i) {
  const std::size_t block = i / p.shape.elements;
  const std::uint32_t e = i % p.shape.elements;
  if (p.is_grouped == 0) {
    const std::byte* row = p.table + token * p.row_bytes;
    return block_element(p.type, row + block * p.shape.size_bytes, e);
  }
  const std::byte* group = p.table + token / kGroupRows * (kGroupRows * p.row_bytes);
  return group_element(p.type, group + block * kGroupRows * p.shape.size_bytes, token % kGroupRows,
                       e);
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
  const float value = token < p.n_vocab ? table_element(p, token, i) : __uint_as_float(0x7fc00000);
  p.out[std::size_t{row} * p.n_embd + i] = value * p.scale;
}

}  // namespace leasehold::device
