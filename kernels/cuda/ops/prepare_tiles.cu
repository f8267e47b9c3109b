/// Stores rows of floats as tiles, if no earlier kernel did.
#include "kernels/cuda/device/matmul_columns.cuh"
#include "kernels/cuda/device/tiles.cuh"

namespace leasehold::device {

/// Grid: one block per result. Bound by latency: a row is read twice, the second time from cache.
LEASEHOLD_KERNEL(lh_prepare_tiles, PrepareTilesParams, 256) {
  __shared__ std::uint32_t scratch[32];
  const std::uint32_t row = blockIdx.x;
  const bool exists = row < result_count(p.gate, p.count);
  if (block_engine_is_stopped(p.gate) || !exists) return;
  const std::uint32_t source = p.select != nullptr ? p.select[row] : row;
  const float* x = p.x + std::size_t{source} * p.tiles.n_in;
  std::uint32_t largest = 0;
  for (std::uint32_t i = threadIdx.x; i < p.tiles.n_in; i += blockDim.x)
    largest = largest > magnitude_bits(x[i]) ? largest : magnitude_bits(x[i]);
  store_tile_row(p.tiles, row, x, block_max(largest, scratch));
}

}  // namespace leasehold::device
