/// Rounds rows of floats to int8, if no earlier kernel did.
#include "kernels/cuda/device/int8/int8_rows.cuh"
#include "kernels/cuda/device/matmul_columns.cuh"
#include "kernels/cuda/device/round_rows_params.hpp"

namespace leasehold::device {

/// Grid: results; groups of eight blocks of a row, one per warp. Bound by latency.
LEASEHOLD_KERNEL(lh_round_rows, RoundRowsParams, 256) {
  const std::uint32_t row = blockIdx.x;
  const bool exists = row < result_count(p.gate, p.count);
  if (warp_engine_is_stopped(p.gate) || !exists) return;
  const std::uint32_t source = p.select != nullptr ? p.select[row] : row;
  const std::uint32_t warps = blockDim.x / kWarp;
  round_blocks(p.rounded, row, p.x + std::size_t{source} * p.rounded.n_in,
               blockIdx.y * warps + warp_of_block(), p.rounded.n_in / p.rounded.block,
               gridDim.y * warps);
}

}  // namespace leasehold::device
