/// Which results a block computes, and the conversion of a sum to a result.
///
/// Threads: the whole block calls each of these; `gather_columns` ends with a barrier.
#pragma once

#include "kernels/cuda/device/matmul_params.hpp"
#include "kernels/cuda/device/warp_collectives.cuh"
#include "kernels/cuda/device/weight_chunks.hpp"

namespace leasehold::device {

__device__ __forceinline__ std::uint32_t result_count(const KernelGate& gate,
                                                      const ResultCount& count) {
  const std::uint32_t rows = count.is_logit_rows != 0 ? gate.step->n_logit_rows : gate.step->n_rows;
  return rows * count.per_row;
}

/// The expert whose matrix the block multiplies; 0 without experts.
__device__ __forceinline__ std::uint32_t expert_of_block(const ExpertAssignment& experts) {
  return experts.has_several() ? blockIdx.y : 0;
}

/// Call once before gather_columns. blockIdx.y counts groups of kColumns results, or experts.
template <std::uint32_t kColumns>
__device__ __forceinline__ void start_columns(ColumnList& list, const ExpertAssignment& experts) {
  if (threadIdx.x == 0) list.next = experts.has_several() ? 0 : blockIdx.y * kColumns;
}

/// Run by one warp: appends the expert's next items below `end`, ascending, up to kColumns, and
/// remembers where it stopped.
template <std::uint32_t kColumns>
__device__ __forceinline__ void gather_items(ColumnList& list, const ExpertAssignment& experts,
                                             std::uint32_t end) {
  std::uint32_t count = 0;
  std::uint32_t first = list.next;
  while (count < kColumns && first < end) {
    const std::uint32_t item = first + lane_of_warp();
    const bool is_mine = item < end && experts.chosen[item] == expert_of_block(experts);
    const std::uint32_t mine = __ballot_sync(kAllLanes, is_mine);
    const std::uint32_t index = count + __popc(mine & ((1u << lane_of_warp()) - 1));
    if (is_mine && index < kColumns) {
      list.source[index] = item / experts.items_per_x;
      list.target[index] = item;
    }
    const std::uint32_t left_out = __ballot_sync(kAllLanes, is_mine && index >= kColumns);
    count += __popc(mine & ~left_out);
    first += left_out == 0 ? kWarp : static_cast<std::uint32_t>(__ffs(left_out)) - 1;
  }
  __syncwarp();
  if (lane_of_warp() == 0) {
    list.count = count;
    list.next = first;
  }
}

/// Likewise, if every row uses all experts in turn: list.next counts the expert's items before.
template <std::uint32_t kColumns>
__device__ __forceinline__ void gather_in_turn(ColumnList& list, const ExpertAssignment& experts,
                                               std::uint32_t end) {
  const std::uint32_t expert = expert_of_block(experts);
  const std::uint32_t n_items =
      end > expert ? (end - expert + experts.n_in_turn - 1) / experts.n_in_turn : 0;
  const std::uint32_t first = list.next;
  const std::uint32_t left = n_items - first;
  const std::uint32_t count = left < kColumns ? left : kColumns;
  for (std::uint32_t i = lane_of_warp(); i < count; i += kWarp) {
    const std::uint32_t item = expert + (first + i) * experts.n_in_turn;
    list.source[i] = item / experts.items_per_x;
    list.target[i] = item;
  }
  __syncwarp();
  if (lane_of_warp() == 0) {
    list.count = count;
    list.next = first + count;
  }
}

/// Collects the block's next kColumns results below `end`, or the expert's next items. Returns
/// false if none are left.
template <std::uint32_t kColumns, class Params>
__device__ __forceinline__ bool gather_columns(ColumnList& list, const Params& p,
                                               std::uint32_t end) {
  __syncthreads();  // no thread reads the previous columns any more
  if (p.experts.n_in_turn != 0) {
    if (warp_of_block() == 0) gather_in_turn<kColumns>(list, p.experts, end);
  } else if (p.experts.chosen != nullptr) {
    if (warp_of_block() == 0) gather_items<kColumns>(list, p.experts, end);
  } else {
    const std::uint32_t left = list.next < end ? end - list.next : 0;
    for (std::uint32_t i = threadIdx.x; i < kColumns && i < left; i += blockDim.x) {
      const std::uint32_t result = list.next + i;
      list.source[i] = p.select != nullptr ? p.select[result] : result;
      list.target[i] = result;
    }
    if (threadIdx.x == 0) list.count = left < kColumns ? left : kColumns;
  }
  __syncthreads();
  return list.count > 0;
}

/// The segment of a row tile.
template <class Params>
__device__ __forceinline__ const MatmulSegment& segment_of(const Params& p, std::uint32_t tile) {
  std::uint32_t i = 0;
  while (i + 1 < p.n_segments && tile >= p.segments[i + 1].first_tile) ++i;
  return p.segments[i];
}
/// The segment that the block computes.
template <class Params>
__device__ __forceinline__ const MatmulSegment& segment_of_block(const Params& p) {
  return segment_of(p, blockIdx.x);
}

/// Index of an output in the biases of all experts.
__device__ __forceinline__ std::size_t bias_index(const ExpertAssignment& experts,
                                                  std::uint32_t n_out, std::uint32_t output) {
  return std::size_t{expert_of_block(experts)} * n_out + output;
}

/// Stores the product + bias + previous value, added in this order. `output` is a row of the
/// segment. Results that do not exist are dropped.
template <class Params>
__device__ __forceinline__ void store_product(const Params& p, const MatmulSegment& to,
                                              const ColumnList& list, std::uint32_t column,
                                              std::uint32_t output, float product) {
  if (column >= list.count || output >= to.n_out) return;
  const float value =
      to.bias != nullptr ? product + to.bias[bias_index(p.experts, to.n_out, output)] : product;
  float* out = to.out + std::size_t{list.target[column]} * to.out_stride + output;
  *out = p.accumulate != 0 ? *out + value : value;
}

/// The parts of one result of a split launch, which different blocks compute:
/// partials[part][column] [row], with the columns and rows of all blocks.
struct ResultParts {
  float* first;
  std::size_t stride;

  __device__ __forceinline__ void store(std::uint32_t part, float sum) const {
    first[part * stride] = sum;
  }
  /// Another block may have stored the part.
  __device__ __forceinline__ float load(std::uint32_t part) const {
    return __uint_as_float(
        load_arrived(reinterpret_cast<const std::uint32_t*>(first + part * stride)));
  }
};

/// The parts of a result of this block, which has kColumns columns and kRows rows.
template <std::uint32_t kColumns, std::uint32_t kRows>
__device__ __forceinline__ ResultParts result_parts(float* partials, std::uint32_t column,
                                                    std::uint32_t row) {
  const std::size_t rows = std::size_t{gridDim.x} * kRows;
  return {partials + (blockIdx.y * kColumns + column) * rows + blockIdx.x * kRows + row,
          gridDim.y * kColumns * rows};
}

/// Stores the product of a row of halves: the sum · the row's scale.
__device__ __forceinline__ void store_result(const MatmulParams& p, const ColumnList& list,
                                             std::uint32_t column, std::uint32_t output,
                                             float sum) {
  if (column >= list.count) return;
  store_product(p, segment_of_block(p), list, column, output,
                sum * p.x.scales[list.source[column]]);
}

}  // namespace leasehold::device
