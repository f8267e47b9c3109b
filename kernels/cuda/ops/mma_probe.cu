/// Checks whether wgmma adds as mma.sync does, bit for bit. It runs once, when a card is opened.
/// Only if the bits agree may large batches use wgmma and small batches mma.sync.
#include "kernels/cuda/device/matmul_params.hpp"
#include "kernels/cuda/device/warp_collectives.cuh"

namespace leasehold::device {

/// Copies b into cores as wgmma reads them: [16 groups of 8 columns][2 · steps][8][8] halves.
__device__ __forceinline__ void copy_probe_columns(std::uint16_t* cores, const std::uint16_t* b,
                                                   std::uint32_t depth) {
  for (std::uint32_t i = threadIdx.x; i < kProbeColumns * depth; i += blockDim.x) {
    const std::uint32_t column = i / depth;
    const std::uint32_t k = i % depth;
    cores[((column / 8 * (depth / 8) + k / 8) * 8 + column % 8) * 8 + k % 8] = b[i];
  }
}

/// Loads the thread's fragment of its warp's rows of a, for one step of 16.
__device__ __forceinline__ void load_probe_rows(std::uint32_t (&a)[4], const std::uint16_t* rows,
                                                std::uint32_t depth, std::uint32_t step) {
  const std::uint16_t* own = rows + (warp_of_block() * 16 + lane_of_warp() / 4) * depth +
                             step * 16 + lane_of_warp() % 4 * 2;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint16_t* at = own + i % 2 * 8 * depth + i / 2 * 8;
    a[i] = at[0] | std::uint32_t{at[1]} << 16;
  }
}

__device__ __forceinline__ void multiply_probe(float (&by_wgmma)[kProbeColumns / 2],
                                               float (&by_mma)[kProbeColumns / 8][4],
                                               const MmaProbeParams& p, const std::byte* cores) {
  const std::uint32_t depth = 16 * p.steps;
  const std::uint32_t group_bytes = 16 * depth;
  const std::uint16_t* rows = p.a + std::size_t{blockIdx.x} * kProbeRows * depth;
  for (std::uint32_t step = 0; step < p.steps; ++step) {
    std::uint32_t a[4];
    load_probe_rows(a, rows, depth, step);
    const std::byte* at = cores + step * 256;
    wgmma_fence();
    wgmma_64x16<kProbeColumns>(by_wgmma, a, at, 128, group_bytes);
    wgmma_commit();
    wgmma_wait<0>();
#pragma unroll
    for (std::uint32_t tile = 0; tile < kProbeColumns / 8; ++tile) {
      const auto* words = reinterpret_cast<const std::uint32_t*>(at + tile * group_bytes);
      const std::uint32_t b[2] = {words[lane_of_warp()], words[32 + lane_of_warp()]};
      mma_16x8x16(by_mma[tile], a, b);
    }
  }
}

/// Grid: one block per product. Shared memory: 256 · 16 · steps bytes. A card without wgmma reports
/// zero comparisons.
LEASEHOLD_KERNEL(lh_mma_probe, MmaProbeParams, 128) {
#if defined(LEASEHOLD_SIMT) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if (block_engine_is_stopped(p.gate)) return;
  const std::uint32_t depth = 16 * p.steps;
  copy_probe_columns(reinterpret_cast<std::uint16_t*>(dynamic_shared()),
                     p.b + std::size_t{blockIdx.x} * kProbeColumns * depth, depth);
  fence_proxy_async();
  __syncthreads();
  float by_wgmma[kProbeColumns / 2] = {};
  float by_mma[kProbeColumns / 8][4] = {};
  multiply_probe(by_wgmma, by_mma, p, dynamic_shared());
  std::uint32_t different = 0;
#pragma unroll
  for (std::uint32_t i = 0; i < kProbeColumns / 2; ++i)
    different += __float_as_uint(by_wgmma[i]) != __float_as_uint(by_mma[i / 4][i % 4]) ? 1 : 0;
  atomicAdd(&p.results[0], kProbeColumns / 2);
  if (different != 0) atomicAdd(&p.results[1], different);
#endif
}

}  // namespace leasehold::device
