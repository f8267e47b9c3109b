/// Copies the blocks of a warp's chunk, for one group after another, through the warp's own ring in
/// shared memory, with bulk copies. Lane 0 starts them, so a copy takes neither registers nor
/// instructions of other lanes. A stage is free when the whole warp has read it.
///
/// The rows of x are in the block's shared memory; those that do not fit pass through the ring
/// behind the weights. Then a stage's barrier expects two arrivals: weights do not depend on an
/// earlier kernel and are copied first, x after the wait for that kernel.
///
/// Threads: one warp.
#pragma once

#include "kernels/cuda/device/int8/early_params.hpp"
#include "kernels/cuda/device/int8/int8_chunk_ring.cuh"

namespace leasehold::device {

template <TensorType kType, std::uint32_t kColumns>
class BulkRing {
  using Shape = GroupShape<kType>;
  static constexpr Int8Unit kUnit = int8_chunk_ring(kType, kColumns).unit;
  static constexpr std::uint32_t kBytesWithX = early_stage_bytes(kUnit, kColumns, false);
  static constexpr std::uint32_t kBytesWithoutX = early_stage_bytes(kUnit, kColumns, true);

 public:
  __device__ __forceinline__ explicit BulkRing(const EarlyMatmulParams& p)
      : p_(p),
        blocks_(blocks_of_row<kType>(p.matmul.x), warp_of_block()),
        has_x_(!early_keeps_rows(kColumns) && p.rows.q_stride == 0),
        stage_bytes_(has_x_ ? kBytesWithX : kBytesWithoutX),
        stages_(dynamic_shared() + p.shared.rings_at +
                warp_of_block() * p.shared.stages * stage_bytes_),
        barriers_(reinterpret_cast<SharedBarrier*>(dynamic_shared()) +
                  warp_of_block() * kMaxEarlyStages) {
    tile_ = blocks_.begin < blocks_.end ? blockIdx.x : p.n_tiles;
    if (tile_ < p.n_tiles) group_ = group_of(tile_);
    next_ = blocks_.begin;
  }

  /// A barrier of the block must follow.
  __device__ __forceinline__ void init_barriers() const {
    if (lane_of_warp() != 0) return;
    for (std::uint32_t i = 0; i < p_.shared.stages; ++i)
      barrier_init(barriers_ + i, has_x_ ? 2 : 1);
  }

  /// Starts copies of weights until no stage is free.
  __device__ __forceinline__ void fill_weights() {
    while (n_filled_ < p_.shared.stages) {
      if (next_ == blocks_.begin) find_next_group();
      if (!start_weights(n_filled_)) break;
      ++n_filled_;
    }
  }

  /// Starts copies of x for all stages that have weights. Call it once, after the wait for the
  /// previous kernel.
  __device__ __forceinline__ void fill_x(const ColumnList& list) {
    if (!has_x_) return;
    std::uint32_t first = blocks_.begin;
    for (std::uint32_t i = 0; i < n_filled_; ++i) {
      start_x(i, first, list);
      first += kUnit.blocks;
      if (first >= blocks_.end) first = blocks_.begin;
    }
  }

  /// Waits for the copies of fill_weights, instead of fill_x and the use of the ring.
  __device__ __forceinline__ void drain() const {
    for (std::uint32_t i = 0; i < n_filled_; ++i) {
      if (has_x_ && lane_of_warp() == 0) barrier_expect(barriers_ + i, 0);
      barrier_wait(barriers_ + i, 0);
    }
  }

  /// Calls visit(block) for each block of the next group, in ascending order. `scales` are those of
  /// x, [n_blocks][kColumns]; `rows` the block's own rows of x, if it has them.
  template <class Visit>
  __device__ __forceinline__ void for_each(const ColumnList& list, const float* scales,
                                           const std::byte* rows, Visit&& visit) {
    find_next_group();
#pragma unroll 1
    for (std::uint32_t first = blocks_.begin; first < blocks_.end; first += kUnit.blocks) {
      barrier_wait(barriers_ + stage_, phase_);
      const std::byte* const unit = stages_ + stage_ * stage_bytes_;
      const std::byte* const x =
          has_x_ ? unit + kUnit.weight_bytes : rows + first * Shape::kElements;
      const auto visit_block = [&](std::uint32_t i) {
        visit(StagedBlock{unit + i * Shape::kBytes, x + i * Shape::kElements,
                          has_x_ ? kUnit.column_stride : p_.rows.q_stride,
                          scales + (first + i) * kColumns, first + i});
      };
      if (kUnit.blocks == 1 || first + kUnit.blocks <= blocks_.end) {
#pragma unroll
        for (std::uint32_t i = 0; i < kUnit.blocks; ++i) visit_block(i);
      } else {
#pragma unroll 1
        for (std::uint32_t i = 0; first + i < blocks_.end; ++i) visit_block(i);
      }
      __syncwarp();  // all lanes have read the stage
      const std::uint32_t next = next_;
      if (start_weights(stage_) && has_x_) start_x(stage_, next, list);
      if (++stage_ == p_.shared.stages) {
        stage_ = 0;
        phase_ ^= 1;
      }
    }
  }

 private:
  /// The blocks of the unit that begins with block `first`.
  __device__ __forceinline__ std::uint32_t blocks_at(std::uint32_t first) const {
    if constexpr (kUnit.blocks == 1) return 1;
    const std::uint32_t left = blocks_.end - first;
    return left < kUnit.blocks ? left : kUnit.blocks;
  }
  /// The weights of a group.
  __device__ __forceinline__ const std::byte* group_of(std::uint32_t tile) const {
    const MatmulSegment& of = segment_of(p_.matmul, tile);
    return of.weights + (tile - of.first_tile) * p_.matmul.group_bytes;
  }
  __device__ __forceinline__ void find_next_group() {
    if (tile_ + gridDim.x < p_.n_tiles) next_group_ = group_of(tile_ + gridDim.x);
  }

  /// Starts to copy the next weights to a stage. Returns false if the block has no more groups.
  __device__ __forceinline__ bool start_weights(std::uint32_t stage) {
    if (tile_ >= p_.n_tiles) return false;
    if (lane_of_warp() == 0) {
      const std::uint32_t bytes = blocks_at(next_) * Shape::kBytes;
      barrier_expect(barriers_ + stage, bytes);
      bulk_copy(stages_ + stage * stage_bytes_, group_ + std::size_t{next_} * Shape::kBytes, bytes,
                barriers_ + stage);
    }
    next_ += kUnit.blocks;
    if (next_ < blocks_.end) return true;
    next_ = blocks_.begin;
    tile_ += gridDim.x;
    group_ = next_group_;
    return true;
  }

  __device__ __forceinline__ void start_x(std::uint32_t stage, std::uint32_t first,
                                          const ColumnList& list) const {
    if (lane_of_warp() != 0) return;
    const std::uint32_t bytes = blocks_at(first) * Shape::kElements;
    std::byte* const to = stages_ + stage * stage_bytes_ + kUnit.weight_bytes;
    barrier_expect(barriers_ + stage, list.count * bytes);
    for (std::uint32_t c = 0; c < list.count; ++c)
      bulk_copy(
          to + c * kUnit.column_stride,
          p_.matmul.x.q + std::size_t{list.source[c]} * p_.matmul.x.n_in + first * Shape::kElements,
          bytes, barriers_ + stage);
  }

  const EarlyMatmulParams& p_;
  ChunkBlocks blocks_;
  bool has_x_;  ///< Units of x pass through the ring, too.
  std::uint32_t stage_bytes_;
  std::byte* stages_;
  SharedBarrier* barriers_;
  // The next unit to copy: its group, its first block, and the weights of this group and of the
  // next one.
  std::uint32_t tile_ = 0;
  std::uint32_t next_ = 0;
  const std::byte* group_ = nullptr;
  const std::byte* next_group_ = nullptr;
  std::uint32_t n_filled_ = 0;
  std::uint32_t stage_ = 0;  ///< The next one to read.
  std::uint32_t phase_ = 0;
};

}  // namespace leasehold::device
