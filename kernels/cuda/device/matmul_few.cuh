/// Matmul for few rows of x, with mma.sync. A block computes 64 rows of weights times kTiles tiles
/// of 8 rows of x.
///
/// Grid: x: n_out / 64, summed over segments; y: groups of 8·kTiles results, or experts; z: parts
/// of the slices, if partials are given, otherwise one block computes all slices in turn. 128
/// threads; few_rows_ring gives the shared memory.
///
/// Bound by: reading the weights, for 8- and 16-bit formats and one or two tiles; every resident
/// block has three stages in flight. 4-bit formats take six instructions per element, 3.5 of them
/// to make a half (Q4_K, sm_90a). At one instruction per cycle that is 12 bytes per cycle and SM,
/// about five sixths of the memory bandwidth of an H100. From four tiles on, reading x from shared
/// memory is a second bound (a wave of 128 bytes per core).
///
/// kernels/cuda/plan/matmul_plan.hpp defines the order of additions: each slice from zero in
/// ascending k, then slices in ascending order. In a split launch, each block stores the sums of
/// its slices, and the last block to arrive adds them.
#pragma once

#include "kernels/cuda/device/matmul_stage.cuh"

namespace leasehold::device {

/// The chunks of whole slices of a row.
struct ChunkRange {
  std::uint32_t begin, end;
  std::uint32_t per_slice;
  std::uint32_t first_slice;
};

/// The chunks of part `part` of `n_parts` of a row; the last part may have fewer slices.
__device__ __forceinline__ ChunkRange chunk_range(std::uint32_t n_in, std::uint32_t columns,
                                                  std::uint32_t n_parts, std::uint32_t part) {
  const std::uint32_t all = (n_in + columns - 1) / columns;
  const std::uint32_t per_slice = slice_length(n_in) / columns;
  const std::uint32_t slices = slices_per_part(n_in, n_parts);
  const std::uint32_t end = (part + 1) * slices * per_slice;
  return {part * slices * per_slice, end < all ? end : all, per_slice, part * slices};
}

template <TensorType kType, std::uint32_t kTiles>
struct FewRows {
  static constexpr WeightChunk kChunk = kWeightChunk<kType>;
  static constexpr RingShape kRing = few_rows_ring(kTiles);
  static constexpr std::uint32_t kThreads = 128;
  static constexpr std::uint32_t kRows = kRing.weight_rows;
  static constexpr std::uint32_t kColumns = kTiles * kTileRows;
  static constexpr std::uint32_t kXBytes = kColumns * kChunk.columns * 2;
  static constexpr std::uint32_t kWarpBytes = kWarpRows * kChunk.slot_bytes;
  static constexpr std::uint32_t kStageBytes = stage_bytes(kChunk, kRing);

  using Sums = float[kTiles][4];

  const MatmulParams& p;
  ColumnList& list;
  std::byte* ring;
  WarpWeights weights;
  WeightCopies<kType> copies;

  __device__ __forceinline__ std::byte* slots(std::byte* stage) const {
    return stage + kXBytes + warp_of_block() * kWarpBytes;
  }

  __device__ __forceinline__ void copy_chunk(std::uint32_t chunk, std::uint32_t stage) const {
    std::byte* to = ring + stage * kStageBytes;
    copies.start(slots(to), chunk);
    copy_x<kThreads, kColumns, kChunk.columns>(to, p.x, list, chunk);
  }

  __device__ __forceinline__ void multiply_group(Sums& sums, const GroupFragments& group,
                                                 const std::byte* cores) const {
    constexpr std::uint32_t kTileBytes = kTileRows * kChunk.columns * 2;
    constexpr std::uint32_t kCoreBytes = kCoreHalves * 2;
#pragma unroll
    for (std::uint32_t step = 0; step < 2; ++step) {
#pragma unroll
      for (std::uint32_t tile = 0; tile < kTiles; ++tile) {
        const std::byte* at = cores + tile * kTileBytes + 2 * step * kCoreBytes;
        const std::uint32_t b[2] = {core_word(at), core_word(at + kCoreBytes)};
        mma_16x8x16(sums[tile], group.a[step], b);
      }
    }
  }

  __device__ __forceinline__ void multiply_chunk(Sums& sums, std::uint32_t chunk,
                                                 std::uint32_t stage) const {
    constexpr std::uint32_t kGroupBytes = kGroup * kTileRows * 2;
    std::byte* from = ring + stage * kStageBytes;
    const StagedRows rows = staged_rows<kType>(slots(from), weights, chunk, p.x.n_in);
    if (is_plain<kType>(rows, weights)) {
#pragma unroll
      for (std::uint32_t group = 0; group < kChunk.columns / kGroup; ++group)
        multiply_group(sums, load_group<kType, true>(rows, group), from + group * kGroupBytes);
    } else {
#pragma unroll 1
      for (std::uint32_t group = 0; group * kGroup < rows.left; ++group) {
        if (group * kGroup == kChunk.columns) break;
        multiply_group(sums, load_group<kType, false>(rows, group), from + group * kGroupBytes);
      }
    }
  }

  /// Sums the products of the range. Folds the slices into `total`, or stores each of them if the
  /// launch is split; the ring continues across slices.
  __device__ __forceinline__ void multiply(Sums& total, const ChunkRange& range) const {
    Sums sums = {};
    std::uint32_t slice = range.first_slice;
    for (std::uint32_t i = 0; i + 1 < kRing.stages; ++i) {
      if (range.begin + i < range.end) copy_chunk(range.begin + i, i);
      copy_async_commit();
    }
    constexpr std::uint32_t kAhead = kRing.stages - 1;
    std::uint32_t stage = 0;
    std::uint32_t slice_end = range.begin + range.per_slice;
    for (std::uint32_t chunk = range.begin; chunk < range.end; ++chunk) {
      copy_async_wait<static_cast<int>(kRing.stages) - 2>();
      __syncthreads();  // the chunk has arrived, and all threads are done with the previous one
      const std::uint32_t before = stage == 0 ? kAhead : stage - 1;
      if (chunk + kAhead < range.end) copy_chunk(chunk + kAhead, before);
      copy_async_commit();
      multiply_chunk(sums, chunk, stage);
      if (chunk + 1 == slice_end || chunk + 1 == range.end) {
        if (p.partials != nullptr) {
          store_partial(sums, slice);
        } else {
          fold(total, sums, slice == 0);
        }
        ++slice;
        slice_end += range.per_slice;
      }
      stage = stage == kAhead ? 0 : stage + 1;
    }
    copy_async_wait<0>();
  }

  __device__ __forceinline__ static void fold(Sums& total, Sums& sums, bool is_first) {
#pragma unroll
    for (std::uint32_t tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) {
        total[tile][i] = is_first ? sums[tile][i] : total[tile][i] + sums[tile][i];
        sums[tile][i] = 0.0F;
      }
    }
  }

  /// The output of the thread's sum i: rows g, g + 8 by columns 2t, 2t + 1.
  __device__ __forceinline__ std::uint32_t output_of(std::uint32_t i) const {
    return weights.first_row + lane_of_warp() / 4 + i / 2 * 8;
  }
  __device__ __forceinline__ static std::uint32_t column_of(std::uint32_t tile, std::uint32_t i) {
    return tile * kTileRows + lane_of_warp() % 4 * 2 + i % 2;
  }

  __device__ __forceinline__ void store(const Sums& total) const {
    for (std::uint32_t tile = 0; tile < kTiles; ++tile)
      for (std::uint32_t i = 0; i < 4; ++i)
        store_result(p, list, column_of(tile, i), output_of(i), total[tile][i]);
  }

  __device__ __forceinline__ ResultParts parts(std::uint32_t tile, std::uint32_t i) const {
    const std::uint32_t own_row = warp_of_block() * kWarpRows + lane_of_warp() / 4 + i / 2 * 8;
    return result_parts<kColumns, kRows>(p.partials, column_of(tile, i), own_row);
  }
  __device__ __forceinline__ bool is_wanted(std::uint32_t tile, std::uint32_t i) const {
    return output_of(i) < weights.n_out && column_of(tile, i) < list.count;
  }

  __device__ __forceinline__ void store_partial(Sums& sums, std::uint32_t slice) const {
#pragma unroll
    for (std::uint32_t tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) {
        if (is_wanted(tile, i)) parts(tile, i).store(slice, sums[tile][i]);
        sums[tile][i] = 0.0F;
      }
    }
  }

  __device__ __forceinline__ void add_partials(Sums& total) const {
    for (std::uint32_t tile = 0; tile < kTiles; ++tile)
      for (std::uint32_t i = 0; i < 4; ++i)
        for (std::uint32_t slice = 0; slice < slice_count(p.x.n_in) && is_wanted(tile, i);
             ++slice) {
          const float sum = parts(tile, i).load(slice);
          total[tile][i] = slice == 0 ? sum : total[tile][i] + sum;
        }
  }

  __device__ __forceinline__ void run() const {
    Sums total;
    multiply(total, chunk_range(p.x.n_in, kChunk.columns, gridDim.z, blockIdx.z));
    if (p.partials != nullptr) {
      if (!arrive(&p.counters[blockIdx.x], gridDim.z).is_last) return;
      add_partials(total);
    }
    store(total);
  }
};

}  // namespace leasehold::device

/// The kernels of one type, by tiles of x.
#define LEASEHOLD_MATMUL_FEW(kType, name)                         \
  LEASEHOLD_KERNEL(lh_matmul_few_##name##_1, MatmulParams, 128) { \
    run_matmul<FewRows<TensorType::kType, 1>>(p);                 \
  }                                                               \
  LEASEHOLD_KERNEL(lh_matmul_few_##name##_2, MatmulParams, 128) { \
    run_matmul<FewRows<TensorType::kType, 2>>(p);                 \
  }                                                               \
  LEASEHOLD_KERNEL(lh_matmul_few_##name##_4, MatmulParams, 128) { \
    run_matmul<FewRows<TensorType::kType, 4>>(p);                 \
  }                                                               \
  LEASEHOLD_KERNEL(lh_matmul_few_##name##_8, MatmulParams, 128) { \
    run_matmul<FewRows<TensorType::kType, 8>>(p);                 \
  }
