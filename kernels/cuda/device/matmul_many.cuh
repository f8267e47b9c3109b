/// Matmul for many rows of x, with wgmma (sm_90a only). A block computes 128 rows of weights times
/// 64 or 128 rows of x.
///
/// Grid: x: n_out / 128, summed over segments; y: groups of 64 or 128 results, or experts. 256
/// threads: two warpgroups of 64 rows of weights each; many_rows_ring gives the shared memory.
///
/// Each weight is converted to a half once, in the registers from which wgmma reads A, and serves
/// all columns; x stays in shared memory as copied, in cores. While the tensor cores compute one
/// group of 32, the warps prepare the next group: about 95 instructions per thread (Q4_K, sm_90a).
/// That is about three quarters of the tensor cores' time for 128 columns, and more than their time
/// for 64. Bound by the longer of the two, and by the number of blocks: an SM holds one block,
/// hence the narrow kernel for small grids.
///
/// Sums have the order of matmul_few.cuh: the same bits, if wgmma adds as mma.sync does.
#pragma once

#include "kernels/cuda/device/matmul_stage.cuh"

namespace leasehold::device {

template <TensorType kType, std::uint32_t kBlockColumns>
struct ManyRows {
  static constexpr WeightChunk kChunk = kWeightChunk<kType>;
  static constexpr std::uint32_t kColumns = kBlockColumns;
  static constexpr RingShape kRing = many_rows_ring(kColumns);
  static constexpr std::uint32_t kThreads = 256;
  static constexpr std::uint32_t kRows = kRing.weight_rows;
  static constexpr std::uint32_t kXBytes = kColumns * kChunk.columns * 2;
  static constexpr std::uint32_t kWarpBytes = kWarpRows * kChunk.slot_bytes;
  static constexpr std::uint32_t kStageBytes = stage_bytes(kChunk, kRing);
  static constexpr std::uint32_t kCoreBytes = kCoreHalves * 2;
  static constexpr std::uint32_t kTileBytes = kTileRows * kChunk.columns * 2;
  static constexpr std::uint32_t kGroupBytes = kGroup * kTileRows * 2;
  static constexpr std::uint32_t kSums = kColumns / 2;

  using Sums = float[kSums];

  const MatmulParams& p;
  ColumnList& list;
  std::byte* ring;
  WarpWeights weights;
  WeightCopies<kType> copies;

  __device__ __forceinline__ std::byte* slots(std::byte* stage) const {
    return stage + kXBytes + warp_of_block() * kWarpBytes;
  }

  /// A chunk and its stage (0 or 1). `exists` is false after the last chunk.
  struct PipelineChunk {
    std::uint32_t chunk;
    std::uint32_t stage;
    bool exists;
  };
  __device__ __forceinline__ static PipelineChunk pipeline_chunk(std::uint32_t chunk,
                                                                 std::uint32_t end) {
    return {chunk, chunk % 2, chunk < end};
  }

  __device__ __forceinline__ void start_copies(const PipelineChunk& current) const {
    std::byte* to = ring + current.stage * kStageBytes;
    if (current.exists) {
      copies.start(slots(to), current.chunk);
      copy_x<kThreads, kColumns, kChunk.columns>(to, p.x, list, current.chunk);
    }
    copy_async_commit();
  }

  /// Enqueues a group's two half-steps on the tensor cores without waiting.
  __device__ __forceinline__ static void start_group(Sums& sums, const GroupFragments& group,
                                                     const std::byte* cores) {
    wgmma_fence();
    wgmma_64x16<kColumns>(sums, group.a[0], cores, kCoreBytes, kTileBytes);
    wgmma_64x16<kColumns>(sums, group.a[1], cores + 2 * kCoreBytes, kCoreBytes, kTileBytes);
    wgmma_commit();
  }

  /// Registers hold two groups at a time: the one being multiplied and the next one. The copies of
  /// the next chunk start meanwhile.
  __device__ __forceinline__ void multiply_plain(Sums& sums, const StagedRows& rows,
                                                 const std::byte* cores,
                                                 const PipelineChunk& next) const {
    constexpr std::uint32_t kGroups = kChunk.columns / kGroup;
    GroupFragments fragments[2];
    fragments[0] = load_group<kType, true>(rows, 0);
#pragma unroll
    for (std::uint32_t group = 0; group < kGroups; ++group) {
      start_group(sums, fragments[group % 2], cores + group * kGroupBytes);
      if (group == 0) start_copies(next);
      if (group + 1 < kGroups)
        fragments[(group + 1) % 2] = load_group<kType, true>(rows, group + 1);
      wgmma_wait<0>();
    }
  }

  __device__ __forceinline__ void multiply_chunk(Sums& sums, const PipelineChunk& current,
                                                 const PipelineChunk& next) const {
    std::byte* from = ring + current.stage * kStageBytes;
    const StagedRows rows = staged_rows<kType>(slots(from), weights, current.chunk, p.x.n_in);
    if (is_plain<kType>(rows, weights)) return multiply_plain(sums, rows, from, next);
    start_copies(next);
#pragma unroll 1
    for (std::uint32_t group = 0; group * kGroup < rows.left; ++group) {
      if (group * kGroup == kChunk.columns) break;
      start_group(sums, load_group<kType, false>(rows, group), from + group * kGroupBytes);
      wgmma_wait<0>();
    }
  }

  __device__ __forceinline__ static void fold(Sums& total, Sums& sums, bool is_first) {
#pragma unroll
    for (std::uint32_t i = 0; i < kSums; ++i) {
      total[i] = is_first ? sums[i] : total[i] + sums[i];
      sums[i] = 0.0F;
    }
  }

  __device__ __forceinline__ void multiply(Sums& total) const {
    const std::uint32_t n_chunks = (p.x.n_in + kChunk.columns - 1) / kChunk.columns;
    const std::uint32_t per_slice = slice_length(p.x.n_in) / kChunk.columns;
    Sums sums = {};
    start_copies(pipeline_chunk(0, n_chunks));
    for (std::uint32_t chunk = 0; chunk < n_chunks; ++chunk) {
      copy_async_wait<0>();
      fence_proxy_async();
      __syncthreads();  // the chunk has arrived, and all threads are done with the previous one
      multiply_chunk(sums, pipeline_chunk(chunk, n_chunks), pipeline_chunk(chunk + 1, n_chunks));
      if (chunk + 1 == n_chunks || (chunk + 1) % per_slice == 0)
        fold(total, sums, chunk < per_slice);
    }
  }

  __device__ __forceinline__ void run() const {
    Sums total;
    multiply(total);
    const std::uint32_t output = weights.first_row + lane_of_warp() / 4;
    const std::uint32_t column = lane_of_warp() % 4 * 2;
#pragma unroll
    for (std::uint32_t i = 0; i < kSums; ++i)
      store_result(p, list, i / 4 * kTileRows + column + i % 2, output + i % 4 / 2 * 8, total[i]);
  }
};

template <TensorType kType, std::uint32_t kColumns>
__device__ __forceinline__ void matmul_many(const MatmulParams& p) {
#if defined(LEASEHOLD_SIMT) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  run_matmul<ManyRows<kType, kColumns>>(p);
#else
  __trap();  // unreachable: no plan names this kernel for such a card
#endif
}

}  // namespace leasehold::device

/// The kernels of one type, by columns per block. `blocks` of the narrow kernel fit an SM: 2 where
/// shared memory has room for them and 128 registers suffice without spills. The sums of 128
/// columns leave registers for one block.
#define LEASEHOLD_MATMUL_MANY(kType, name, blocks)                                   \
  static_assert((blocks) <= many_rows_blocks(TensorType::kType, 64));                \
  LEASEHOLD_KERNEL_RESIDENT(lh_matmul_many_##name##_64, MatmulParams, 256, blocks) { \
    matmul_many<TensorType::kType, 64>(p);                                           \
  }                                                                                  \
  LEASEHOLD_KERNEL(lh_matmul_many_##name##_128, MatmulParams, 256) {                 \
    matmul_many<TensorType::kType, 128>(p);                                          \
  }
