/// out[r, :] = table[tokens[r], :]; one thread per element.
#include "kernels/cuda/device/element.cuh"
#include "kernels/cuda/device/embedding_params.hpp"
#include "kernels/cuda/device/gate.cuh"

namespace leasehold::device {

/// Grid: columns / 256, rows.
LEASEHOLD_KERNEL(lh_embedding, EmbeddingParams, 256) {
  if (engine_is_stopped(p.gate)) return;
  const std::uint32_t row = blockIdx.y;
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= row_count(p.gate) || i >= p.n_embd) return;
  const auto token = static_cast<std::uint32_t>(p.tokens[row]);
  // A token outside the vocabulary must not read beyond the table. It gives NaN, which sampling
  // detects.
  const float value = token < p.n_vocab ? row_element(p.type, p.shape,
                                                      p.table + std::size_t{token} * p.row_bytes, i)
                                        : __uint_as_float(0x7fc00000);
  p.out[std::size_t{row} * p.n_embd + i] = value;
}

}  // namespace leasehold::device
