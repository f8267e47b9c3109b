/// How blocks that multiply whole rows of several groups add chunks. The blocks of a split launch
/// (grid.z) share the chunks of a row, and each computes its own one after another. The block of
/// the first chunk adds its chunks; the others store each one, and the last block to arrive adds
/// them, so all are added in ascending order.
#pragma once

#include "kernels/cuda/device/int8/int8_columns.cuh"

namespace leasehold::device {

/// kRows and kColumns are the block's. `for_each(visit)` calls visit(total, column, row of the
/// block) for each result of the thread.
template <std::uint32_t kColumns, std::uint32_t kRows>
struct ChunkSums {
  const Int8MatmulParams& p;
  const ColumnList& list;
  std::uint32_t n_blocks;  ///< Blocks of a row.

  /// gridDim.z is a power of two, so no division is necessary.
  __device__ __forceinline__ static std::uint32_t chunks_of_block() {
    return kInt8Chunks >> (__ffs(gridDim.z) - 1);
  }
  __device__ __forceinline__ ResultParts parts(std::uint32_t column, std::uint32_t row) const {
    return result_parts<kColumns, kRows>(p.partials, column, row);
  }

  /// Adds a chunk to the totals, or stores it. `fold(is_first)` adds the thread's sums to its
  /// totals, which the first ones start, and clears the sums.
  template <class Fold, class ForEach>
  __device__ __forceinline__ void end_chunk(std::uint32_t chunk, Fold&& fold,
                                            ForEach&& for_each) const {
    fold(chunk == 0 || blockIdx.z != 0);
    if (blockIdx.z != 0) store(chunk, for_each);
  }
  template <class ForEach>
  __device__ __forceinline__ void store(std::uint32_t chunk, ForEach&& for_each) const {
    for_each([&](float total, std::uint32_t column, std::uint32_t row) {
      if (column < list.count) parts(column, row).store(chunk, total);
    });
  }

  /// Adds the chunks of other blocks to the totals. Returns false if another block does it.
  template <class ForEach>
  __device__ __forceinline__ bool complete(ForEach&& for_each) const {
    if (gridDim.z == 1) return true;
    if (blockIdx.z == 0) store(0, for_each);
    if (!arrive(&p.counters[blockIdx.y * gridDim.x + blockIdx.x], gridDim.z).is_last) return false;
    const std::uint32_t per_chunk = int8_chunk_blocks(n_blocks);
    for_each([&](float& total, std::uint32_t column, std::uint32_t row) {
      if (column >= list.count) return;
      const ResultParts of = parts(column, row);
      total = of.load(0);
      for (std::uint32_t chunk = chunks_of_block(); chunk * per_chunk < n_blocks; ++chunk)
        total += of.load(chunk);
    });
    return true;
  }
};

}  // namespace leasehold::device
