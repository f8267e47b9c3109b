/// Kernels of tests/checks/gpu_check; models do not use them.
#include "kernels/cuda/device/bench_params.hpp"
#include "kernels/cuda/device/warp_collectives.cuh"

namespace leasehold::device {

/// Source: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
__device__ __forceinline__ std::uint64_t splitmix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

LEASEHOLD_KERNEL(lh_fill, FillParams, 256) {
  if (engine_is_stopped(p.gate)) return;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < p.n_words;
       i += stride)
    p.to[i] = (splitmix64(p.seed + i) & p.keep) | p.set;
}

LEASEHOLD_KERNEL(lh_poke, PokeParams, 1) {
  if (engine_is_stopped(p.gate)) return;
  *p.at = p.value;
}

LEASEHOLD_KERNEL(lh_keep_writing, KeepWritingParams, 1) {
  if (engine_is_stopped(p.gate)) return;
  auto* const at = p.at + std::uint64_t{blockIdx.x} * p.words_apart;
  for (std::uint32_t i = 1; i <= p.n_writes; ++i) *static_cast<volatile std::uint32_t*>(at) = i;
}

LEASEHOLD_KERNEL(lh_gate_polls, GatePollsParams, 1) {
  std::uint32_t seen = 0;
  while (seen < p.n_polls) {
    if (engine_is_stopped(p.gate)) return;
    ++seen;
  }
  *p.n_polled_open = seen;
}

/// Small halves of either sign: the sum of any number of their products is finite.
__device__ __forceinline__ std::uint32_t two_halves(std::uint32_t seed) {
  return (static_cast<std::uint32_t>(splitmix64(seed)) & 0x83FF83FFu) | 0x24002400u;
}

#if defined(LEASEHOLD_SIMT) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
__device__ __forceinline__ float multiply(const MmaRateParams& p, const std::uint32_t (&a)[4],
                                          const std::byte* cores) {
  float d[MmaRateParams::kColumns / 2] = {};
  for (std::uint32_t round = 0; round < p.rounds; ++round) {
    wgmma_fence();
#pragma unroll
    for (std::uint32_t i = 0; i < MmaRateParams::kTimesEach; ++i)
      wgmma_64x16<MmaRateParams::kColumns>(d, a, cores, 128, 256);
    wgmma_commit();
    wgmma_wait<0>();
  }
  float sum = 0.0F;
#pragma unroll
  for (const float value : d) sum += value;
  return sum;
}
#else
__device__ __forceinline__ float multiply(const MmaRateParams& p, const std::uint32_t (&a)[4],
                                          const std::byte* cores) {
  constexpr std::uint32_t kTiles = MmaRateParams::kColumns / 8;
  const auto* words = reinterpret_cast<const std::uint32_t*>(cores);
  const std::uint32_t b[2] = {words[lane_of_warp()], words[32 + lane_of_warp()]};
  float d[kTiles][4] = {};
  for (std::uint32_t i = 0; i < p.rounds * MmaRateParams::kTimesEach; ++i) {
#pragma unroll
    for (std::uint32_t tile = 0; tile < kTiles; ++tile) mma_16x8x16(d[tile], a, b);
  }
  float sum = 0.0F;
#pragma unroll
  for (std::uint32_t tile = 0; tile < kTiles; ++tile)
    sum += d[tile][0] + d[tile][1] + d[tile][2] + d[tile][3];
  return sum;
}
#endif

/// Shared memory: 32 bytes per column.
LEASEHOLD_KERNEL(lh_mma_rate, MmaRateParams, 128) {
  if (block_engine_is_stopped(p.gate)) return;
  std::byte* const cores = dynamic_shared();
  auto* const words = reinterpret_cast<std::uint32_t*>(cores);
  for (std::uint32_t i = threadIdx.x; i < MmaRateParams::kColumns * 8; i += blockDim.x)
    words[i] = two_halves(i);
#if defined(LEASEHOLD_SIMT) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  fence_proxy_async();
#endif
  __syncthreads();
  const std::uint32_t seed = 4096 + threadIdx.x * 4;
  const std::uint32_t a[4] = {two_halves(seed), two_halves(seed + 1), two_halves(seed + 2),
                              two_halves(seed + 3)};
  p.sums[blockIdx.x * blockDim.x + threadIdx.x] = multiply(p, a, cores);
}

}  // namespace leasehold::device
