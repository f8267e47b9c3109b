/// Matmul of row groups in int8 arithmetic, with the bits of dot_group_int8, in blocks of 256
/// threads. The number of rows of x determines the kernel:
///
///   Int8Few     one or two: a block computes a group, a warp one of its chunks, with dp4a
///   Int8Eight   up to 8: likewise, with mma
///   Int8Tile    up to 32 or 64: a block computes four groups, or a part of their chunks, with mma
///   Int8Many    up to 32, 64 or 128, on sm_90a: eight groups, likewise, with wgmma
///
/// Grid: x: groups, or fours or eights of them, summed over segments; y: blocks of kColumns
/// results, or experts; z: parts of the chunks, from Int8Tile on: 1, 2, 4 or 8.
///
/// Bound by: reading the weights, for up to eight rows.
#pragma once

#include "kernels/cuda/device/int8/int8_few.cuh"
#include "kernels/cuda/device/int8/int8_many.cuh"
#include "kernels/cuda/device/int8/int8_products.cuh"
#include "kernels/cuda/device/int8/int8_rows.cuh"
#include "kernels/cuda/device/int8/int8_tile.cuh"
#include "kernels/numerics/elementwise.hpp"

namespace leasehold::device {

/// Adds the results of the chunks in ascending order, and stores the sums. Empty chunks are
/// skipped.
template <std::uint32_t kColumns>
__device__ __forceinline__ void store_chunks(const Int8MatmulParams& p, const ColumnList& list,
                                             const MatmulSegment& to, std::uint32_t group,
                                             const float* parts) {
  constexpr std::uint32_t kPart = kColumns * kGroupRows;
  const std::uint32_t n_blocks = p.x.n_in / p.x.block;
  const std::uint32_t per_chunk = int8_chunk_blocks(n_blocks);
  for (std::uint32_t i = threadIdx.x; i < kPart; i += blockDim.x) {
    float dot = parts[i];
    for (std::uint32_t chunk = 1; chunk * per_chunk < n_blocks; ++chunk)
      dot += parts[chunk * kPart + i];
    store_product(p, to, list, i / kGroupRows, group * kGroupRows + i % kGroupRows, dot);
  }
}

__device__ __forceinline__ std::uint32_t groups_of(const MatmulSegment& segment) {
  return (segment.n_out + kGroupRows - 1) / kGroupRows;
}

/// The matrix of the block's segment and expert.
__device__ __forceinline__ const std::byte* matrix_of(const Int8MatmulParams& p,
                                                      const MatmulSegment& of) {
  return of.weights + std::size_t{expert_of_block(p.experts)} * groups_of(of) * p.group_bytes;
}

/// Gates and rounds the outputs around the block's own, if it is the last one that computes any of
/// them. The whole block must call it, after it has stored its products.
__device__ __forceinline__ void gate_products(const Int8MatmulParams& p, const ColumnList& list,
                                              std::uint32_t group) {
  constexpr std::uint32_t kGroups = kGatedOutputs / kGroupRows;
  const MatmulSegment& gate = p.segments[0];
  const MatmulSegment& up = p.segments[1];
  const std::uint32_t part = group / kGroups;
  const std::uint32_t left = groups_of(gate) - part * kGroups;
  const std::uint32_t n_blocks = 2 * (left < kGroups ? left : kGroups);
  if (!arrive(&p.gated.counters[part], n_blocks).is_last) return;
  const std::uint32_t first = part * kGatedOutputs;
  const std::uint32_t n = gate.n_out - first < kGatedOutputs ? gate.n_out - first : kGatedOutputs;
  for (std::uint32_t i = threadIdx.x; i < n * list.count; i += blockDim.x) {
    const std::size_t row = list.target[i / n];
    float& out = gate.out[row * gate.out_stride + first + i % n];
    out = gated(p.gated.activation, out, up.out[row * up.out_stride + first + i % n]);
  }
  __syncthreads();
  const Int8Rows& rounded = p.gated.rounded;
  const std::uint32_t per_row = n / rounded.block;
  for (std::uint32_t i = warp_of_block(); i < per_row * list.count; i += blockDim.x / kWarp) {
    const std::uint32_t row = list.target[i / per_row];
    const std::uint32_t block = first / rounded.block + i % per_row;
    round_blocks(rounded, row, gate.out + std::size_t{row} * gate.out_stride, block, block + 1, 1);
  }
}

/// Runs `Kernel` (Int8Few or Int8Eight) for all columns of the block.
template <class Kernel>
__device__ __forceinline__ void matmul_int8_chunks(const Int8MatmulParams& p) {
  __shared__ ColumnList list;
  auto* const parts = reinterpret_cast<float*>(dynamic_shared());
  const std::uint32_t end = result_count(p.gate, p.count);
  if (block_engine_is_stopped(p.gate)) return;
  start_columns<Kernel::kColumns>(list, p.experts);
  const MatmulSegment& of = segment_of_block(p);
  const std::uint32_t group = blockIdx.x - of.first_tile;
  const std::byte* const weights = matrix_of(p, of) + group * p.group_bytes;
  while (gather_columns<Kernel::kColumns>(list, p, end)) {
    const std::uint32_t chunk = warp_of_block();
    const Kernel kernel(p.x, list);
    typename Kernel::Sums sums = {};
    ChunkRing<Kernel::kWeightType, Kernel::kColumns>(p.x, list, weights, chunk)
        .for_each([&](const StagedBlock& block) { kernel.add(sums, block); });
    __syncthreads();  // `parts` uses the memory of the rings
    kernel.store(sums, parts + chunk * Kernel::kColumns * kGroupRows);
    __syncthreads();
    store_chunks<Kernel::kColumns>(p, list, of, group, parts);
    if (p.gated.counters != nullptr) return gate_products(p, list, group);
    if (!p.experts.has_several()) return;
  }
}

/// Runs `Kernel` (Int8Tile or Int8Many) for all columns of the block.
template <class Kernel>
__device__ __forceinline__ void matmul_int8_rows(const Int8MatmulParams& p) {
  __shared__ ColumnList list;
  const std::uint32_t end = result_count(p.gate, p.count);
  if (block_engine_is_stopped(p.gate)) return;
  start_columns<Kernel::kColumns>(list, p.experts);
  const MatmulSegment& of = segment_of_block(p);
  const std::uint32_t n_blocks = p.x.n_in / p.x.block;
  const std::uint32_t n_chunks = Kernel::Chunks::chunks_of_block();
  const Kernel kernel = {.p = p,
                         .list = list,
                         .weights = matrix_of(p, of),
                         .first_group = (blockIdx.x - of.first_tile) * Kernel::kGroups,
                         .n_groups = groups_of(of),
                         .n_blocks = n_blocks,
                         .blocks = {n_blocks, blockIdx.z * n_chunks, n_chunks}};
  while (gather_columns<Kernel::kColumns>(list, p, end)) {
    kernel.run(of);
    if (!p.experts.has_several()) return;
  }
}

template <TensorType kType, std::uint32_t kColumns>
__device__ __forceinline__ void matmul_int8_many(const Int8MatmulParams& p) {
#if defined(LEASEHOLD_SIMT) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  matmul_int8_rows<Int8Many<kType, kColumns>>(p);
#else
  __trap();  // unreachable: no plan names this kernel for such a card
#endif
}

}  // namespace leasehold::device

/// The kernels of one type with wgmma. Two blocks of up to 64 columns fit the registers of an SM.
#define LEASEHOLD_MATMUL_INT8_MANY(kType, name)                                          \
  LEASEHOLD_KERNEL_RESIDENT(lh_matmul_int8_many_##name##_32, Int8MatmulParams, 256, 2) { \
    matmul_int8_many<TensorType::kType, 32>(p);                                          \
  }                                                                                      \
  LEASEHOLD_KERNEL_RESIDENT(lh_matmul_int8_many_##name##_64, Int8MatmulParams, 256, 2) { \
    matmul_int8_many<TensorType::kType, 64>(p);                                          \
  }                                                                                      \
  LEASEHOLD_KERNEL(lh_matmul_int8_many_##name##_128, Int8MatmulParams, 256) {            \
    matmul_int8_many<TensorType::kType, 128>(p);                                         \
  }

/// The kernels of one type, by rows of x. Two blocks of a tile fit the registers of an SM.
#define LEASEHOLD_MATMUL_INT8(kType, name)                                          \
  LEASEHOLD_KERNEL(lh_matmul_int8_##name##_1, Int8MatmulParams, 256) {              \
    matmul_int8_chunks<Int8Few<TensorType::kType, 1>>(p);                           \
  }                                                                                 \
  LEASEHOLD_KERNEL(lh_matmul_int8_##name##_2, Int8MatmulParams, 256) {              \
    matmul_int8_chunks<Int8Few<TensorType::kType, 2>>(p);                           \
  }                                                                                 \
  LEASEHOLD_KERNEL(lh_matmul_int8_##name##_8, Int8MatmulParams, 256) {              \
    matmul_int8_chunks<Int8Eight<TensorType::kType>>(p);                            \
  }                                                                                 \
  LEASEHOLD_KERNEL_RESIDENT(lh_matmul_int8_##name##_32, Int8MatmulParams, 256, 2) { \
    matmul_int8_rows<Int8Tile<TensorType::kType, 32>>(p);                           \
  }                                                                                 \
  LEASEHOLD_KERNEL_RESIDENT(lh_matmul_int8_##name##_64, Int8MatmulParams, 256, 2) { \
    matmul_int8_rows<Int8Tile<TensorType::kType, 64>>(p);                           \
  }
