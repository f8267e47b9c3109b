/// Matmul of row groups for up to eight rows of x that starts before the previous kernel has ended
/// (device/gate.cuh has the rules). The bits are those of the other int8 kernels.
///
/// A block of 256 threads loops over groups: group blockIdx.x, blockIdx.x + gridDim.x … of all
/// segments. A warp multiplies one chunk of each group. Before the wait for the previous kernel,
/// the warps fill their rings with weights; then the block reads the gate, and x.
///
/// Grid: blocks, at most the groups of all segments.
///
/// Bound by: reading the weights.
#pragma once

#include "kernels/cuda/device/int8/int8_bulk_ring.cuh"
#include "kernels/cuda/device/int8/matmul_int8.cuh"
#include "kernels/cuda/device/int8/normed_rows.cuh"

namespace leasehold::device {

/// Stores the scales of x by block and column. Columns beyond the list repeat its first one.
template <TensorType kType, std::uint32_t kColumns>
__device__ __forceinline__ void gather_scales(const Int8Rows& x, const ColumnList& list,
                                              float* scales) {
  const std::uint32_t n = blocks_of_row<kType>(x) * kColumns;
  for (std::uint32_t i = threadIdx.x; i < n; i += blockDim.x)
    scales[i] = x.scales[first_block_of_column<kType>(x, list, i % kColumns) + i / kColumns];
}

/// Copies the q of the rows in the list to shared memory.
__device__ __forceinline__ void keep_rows(const EarlyMatmulParams& p, const ColumnList& list,
                                          std::byte* rows) {
  const Int8Rows& x = p.matmul.x;
  for (std::uint32_t c = 0; c < list.count; ++c) {
    const auto* const from =
        reinterpret_cast<const uint4*>(x.q + std::size_t{list.source[c]} * x.n_in);
    auto* const to = reinterpret_cast<uint4*>(rows + c * p.rows.q_stride);
    for (std::uint32_t i = threadIdx.x; i < x.n_in / sizeof(uint4); i += blockDim.x)
      to[i] = from[i];
  }
}

/// Multiplies all groups of the block.
template <class Kernel, class Ring>
__device__ __forceinline__ void multiply_groups(const EarlyMatmulParams& p, const ColumnList& list,
                                                const Int8Rows& x, Ring& ring) {
  constexpr std::uint32_t kPart = Kernel::kColumns * kGroupRows;
  const auto* const scales = reinterpret_cast<const float*>(dynamic_shared() + p.shared.scales_at);
  const std::byte* const rows = dynamic_shared() + p.shared.rows_at;
  auto* parts = reinterpret_cast<float*>(dynamic_shared() + kEarlyPartsAt);
  float* next_parts = parts + kInt8Chunks * kPart;
  const Kernel kernel(x, list);
#pragma unroll 1
  for (std::uint32_t tile = blockIdx.x; tile < p.n_tiles; tile += gridDim.x) {
    typename Kernel::Sums sums = {};
    ring.for_each(list, scales, rows, [&](const StagedBlock& block) { kernel.add(sums, block); });
    kernel.store(sums, parts + warp_of_block() * kPart);
    __syncthreads();  // the parts are complete, and those of the group before are read
    const MatmulSegment& of = segment_of(p.matmul, tile);
    const std::uint32_t group = tile - of.first_tile;
    store_chunks<Kernel::kColumns>(p.matmul, list, of, group, parts);
    if (p.matmul.gated.counters != nullptr) gate_products(p.matmul, list, group);
    float* const read = parts;
    parts = next_parts;
    next_parts = read;
  }
}

/// Runs `Kernel` (Int8Few or Int8Eight) for all groups of the block.
template <class Kernel>
__device__ __forceinline__ void matmul_int8_early(const EarlyMatmulParams& p) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // no plan starts these kernels on other cards
  __shared__ ColumnList list;
  constexpr TensorType kType = Kernel::kWeightType;
  trigger_next_kernel();
  BulkRing<kType, Kernel::kColumns> ring(p);
  ring.init_barriers();
  __syncthreads();
  if (!warp_engine_is_stopped(p.matmul.gate)) ring.fill_weights();
  await_previous_kernel();
  const std::uint32_t end = result_count(p.matmul.gate, p.matmul.count);
  if (block_engine_is_stopped(p.matmul.gate)) return ring.drain();
  ring.fill_weights();  // starts none, unless the engine was stopped before
  start_columns<Kernel::kColumns>(list, p.matmul.experts);
  if (!gather_columns<Kernel::kColumns>(list, p.matmul, end)) return ring.drain();
  ring.fill_x(list);
  Int8Rows x = p.matmul.x;
  std::byte* const rows = dynamic_shared() + p.shared.rows_at;
  if (p.norm.x != nullptr) {
    x = own_rows(p, rows);
    round_normed_rows<Kernel::kColumns>(p, list, x);
    __syncthreads();
  } else if (p.rows.q_stride != 0) {
    keep_rows(p, list, rows);
  }
  gather_scales<kType, Kernel::kColumns>(
      x, list, reinterpret_cast<float*>(dynamic_shared() + p.shared.scales_at));
  __syncthreads();
  multiply_groups<Kernel>(p, list, x, ring);
#endif
}

}  // namespace leasehold::device

/// The early kernels of one type, by rows of x. The blocks of two kernels fit the registers of an
/// SM: four of 64 registers per thread, or two of 128.
#define LEASEHOLD_MATMUL_INT8_EARLY(kType, name)                                  \
  LEASEHOLD_KERNEL_EARLY(lh_matmul_early_##name##_1, EarlyMatmulParams, 256, 4) { \
    matmul_int8_early<Int8Few<TensorType::kType, 1>>(p);                          \
  }                                                                               \
  LEASEHOLD_KERNEL_EARLY(lh_matmul_early_##name##_2, EarlyMatmulParams, 256, 4) { \
    matmul_int8_early<Int8Few<TensorType::kType, 2>>(p);                          \
  }                                                                               \
  LEASEHOLD_KERNEL_EARLY(lh_matmul_early_##name##_8, EarlyMatmulParams, 256, 2) { \
    matmul_int8_early<Int8Eight<TensorType::kType>>(p);                           \
  }
