/// Decisions and sums that the threads of a warp or a block share.
///
/// The host may change the mirror while a kernel reads it. Threads that wait for each other must
/// take the same branch, so one thread reads the mirror and all use its answer.
#pragma once

#include "kernels/cuda/device/gate.cuh"

namespace leasehold::device {

inline constexpr std::uint32_t kWarp = 32;
inline constexpr std::uint32_t kAllLanes = 0xffffffffu;

__device__ __forceinline__ std::uint32_t lane_of_warp() {
  return threadIdx.x % kWarp;
}
__device__ __forceinline__ std::uint32_t warp_of_block() {
  return threadIdx.x / kWarp;
}

/// The whole warp must call this function.
__device__ __forceinline__ bool warp_engine_is_stopped(const KernelGate& gate) {
  std::uint32_t stopped = 0;
  if (lane_of_warp() == 0) stopped = engine_is_stopped(gate) ? 1 : 0;
  return __shfl_sync(kAllLanes, stopped, 0) != 0;
}
__device__ __forceinline__ bool warp_row_is_live(const KernelGate& gate, std::uint32_t row) {
  std::uint32_t live = 0;
  if (lane_of_warp() == 0) live = row_is_live(gate, row) ? 1 : 0;
  return __shfl_sync(kAllLanes, live, 0) != 0;
}

/// The whole block must call this function, once: it is a barrier. Reports the epoch, too.
__device__ __forceinline__ bool block_engine_is_stopped(const KernelGate& gate) {
  __shared__ std::uint32_t stopped;
  if (threadIdx.x == 0) {
    stopped = engine_is_stopped(gate) ? 1 : 0;
    report_tenant_seen(gate);
  }
  __syncthreads();
  return stopped != 0;
}
/// What the mirror says of a row: the engine is stopped, the row's sequence is dead, or it is live.
enum class RowState : std::uint32_t { Stopped, Dead, Live };
/// The whole block must call this function, once: it is a barrier.
__device__ __forceinline__ RowState block_row_state(const KernelGate& gate, std::uint32_t row) {
  __shared__ RowState state;
  if (threadIdx.x == 0) {
    const bool is_stopped = engine_is_stopped(gate);  // load both, so that the loads overlap
    const bool is_live = row_is_live(gate, row);
    state = is_stopped ? RowState::Stopped : is_live ? RowState::Live : RowState::Dead;
  }
  __syncthreads();
  return state;
}
__device__ __forceinline__ bool block_row_is_live(const KernelGate& gate, std::uint32_t row) {
  return block_row_state(gate, row) == RowState::Live;
}

/// The result of a block's arrival, after the block has stored its part of a result.
struct Arrival {
  bool is_last;   ///< All blocks have arrived, and this block may read what they stored.
  bool has_flag;  ///< A block that arrived so far had its flag set.
};

/// Counts this block as arrived; `n_blocks` is below 2^16. The whole block must call this function;
/// thread 0's `flag` counts. The last block resets the counter to zero. Blocks that a stop skips do
/// not arrive, so the host clears the counters after a stop.
__device__ __forceinline__ Arrival arrive(std::uint32_t* counter, std::uint32_t n_blocks,
                                          bool flag = false) {
  constexpr std::uint32_t kFlag = 1u << 16;  // the upper half counts flags
  __shared__ std::uint32_t total;
  __threadfence();  // pairs with the fence below, through the counter
  __syncthreads();
  if (threadIdx.x == 0) {
    const std::uint32_t own = flag ? kFlag + 1 : 1;
    total = atomicAdd(counter, own) + own;
    if (total % kFlag == n_blocks) *counter = 0;
  }
  __syncthreads();
  __threadfence();
  return {total % kFlag == n_blocks, total >= kFlag};
}

/// Loads what another block stored before it arrived. Bypasses this SM's cache, which may hold what
/// was there before.
template <class Word>
__device__ __forceinline__ Word load_arrived(const Word* at) {
  return load_acquire(at);
}

/// The sum of the lanes in the order of fold_lanes (kernels/numerics/ordered_sum.hpp), for every
/// lane. Addition commutes, so a lane and its partner have the same bits at every step.
__device__ __forceinline__ float fold_warp(float own) {
  for (std::uint32_t half = kWarp / 2; half > 0; half /= 2)
    own += __shfl_xor_sync(kAllLanes, own, half);
  return own;
}

/// ordered_dot, computed by one warp.
__device__ __forceinline__ float warp_dot(const float* a, const float* b, std::uint32_t n) {
  float own = 0.0F;
#pragma unroll 8
  for (std::uint32_t i = lane_of_warp(); i < n; i += kWarp) own = fmaf(a[i], b[i], own);
  return fold_warp(own);
}

}  // namespace leasehold::device
