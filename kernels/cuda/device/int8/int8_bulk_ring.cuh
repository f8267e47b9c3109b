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
    weights_.tile = count() > 0 ? blockIdx.x : p.n_tiles;
    find_group();
  }

  /// A barrier of the block must follow.
  __device__ __forceinline__ void init_barriers() const {
    if (lane_of_warp() != 0) return;
    for (std::uint32_t i = 0; i < p_.shared.stages; ++i)
      barrier_init(barriers_ + i, has_x_ ? 2 : 1);
  }

  /// Starts copies of weights until no stage is free.
  __device__ __forceinline__ void fill_weights() {
    while (n_filled_ < p_.shared.stages && start_weights()) ++n_filled_;
  }

  /// Starts copies of x for all stages that have weights. Call it once, after the wait for the
  /// previous kernel.
  __device__ __forceinline__ void fill_x(const ColumnList& list) {
    if (!has_x_) return;
    Position at = {.tile = blockIdx.x};
    for (std::uint32_t i = 0; i < n_filled_; ++i) {
      start_x(at, list);
      (void)advance(at);
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
#pragma unroll 1
    for (std::uint32_t first = 0; first < count(); first += kUnit.blocks) {
      barrier_wait(barriers_ + stage_, phase_);
      const std::byte* const unit = stages_ + stage_ * stage_bytes_;
      const std::uint32_t index = blocks_.begin + first;
      const std::byte* const x =
          has_x_ ? unit + kUnit.weight_bytes : rows + index * Shape::kElements;
      const auto visit_block = [&](std::uint32_t i) {
        visit(StagedBlock{unit + i * Shape::kBytes, x + i * Shape::kElements,
                          has_x_ ? kUnit.column_stride : p_.rows.q_stride,
                          scales + (index + i) * kColumns, index + i});
      };
      if (kUnit.blocks == 1 || first + kUnit.blocks <= count()) {
#pragma unroll
        for (std::uint32_t i = 0; i < kUnit.blocks; ++i) visit_block(i);
      } else {
#pragma unroll 1
        for (std::uint32_t i = 0; first + i < count(); ++i) visit_block(i);
      }
      __syncwarp();  // all lanes have read the stage
      const Position next = weights_;
      if (start_weights() && has_x_) start_x(next, list);
      if (++stage_ == p_.shared.stages) {
        stage_ = 0;
        phase_ ^= 1;
      }
    }
  }

 private:
  /// The next unit to copy: its stage, its group and its first block in the chunk.
  struct Position {
    std::uint32_t stage = 0;
    std::uint32_t tile = 0;
    std::uint32_t first = 0;
  };

  __device__ __forceinline__ std::uint32_t count() const { return blocks_.end - blocks_.begin; }
  __device__ __forceinline__ std::uint32_t blocks_at(const Position& at) const {
    const std::uint32_t left = count() - at.first;
    return left < kUnit.blocks ? left : kUnit.blocks;
  }
  /// Returns true if the next unit is of another group.
  __device__ __forceinline__ bool advance(Position& at) const {
    if (++at.stage == p_.shared.stages) at.stage = 0;
    at.first += kUnit.blocks;
    if (at.first < count()) return false;
    at.first = 0;
    at.tile += gridDim.x;
    return true;
  }
  /// Finds the weights of the chunk in the next group to copy.
  __device__ __forceinline__ void find_group() {
    if (weights_.tile >= p_.n_tiles) return;
    const MatmulSegment& of = segment_of(p_.matmul, weights_.tile);
    chunk_ = of.weights + (weights_.tile - of.first_tile) * p_.matmul.group_bytes +
             std::size_t{blocks_.begin} * Shape::kBytes;
  }

  /// Returns false if the block has no more groups.
  __device__ __forceinline__ bool start_weights() {
    if (weights_.tile >= p_.n_tiles) return false;
    if (lane_of_warp() == 0) {
      const std::uint32_t bytes = blocks_at(weights_) * Shape::kBytes;
      barrier_expect(barriers_ + weights_.stage, bytes);
      bulk_copy(stages_ + weights_.stage * stage_bytes_,
                chunk_ + std::size_t{weights_.first} * Shape::kBytes, bytes,
                barriers_ + weights_.stage);
    }
    if (advance(weights_)) find_group();
    return true;
  }

  __device__ __forceinline__ void start_x(const Position& at, const ColumnList& list) const {
    if (lane_of_warp() != 0) return;
    const std::uint32_t bytes = blocks_at(at) * Shape::kElements;
    std::byte* const to = stages_ + at.stage * stage_bytes_ + kUnit.weight_bytes;
    barrier_expect(barriers_ + at.stage, list.count * bytes);
    for (std::uint32_t c = 0; c < list.count; ++c)
      bulk_copy(to + c * kUnit.column_stride,
                p_.matmul.x.q + std::size_t{list.source[c]} * p_.matmul.x.n_in +
                    (blocks_.begin + at.first) * Shape::kElements,
                bytes, barriers_ + at.stage);
  }

  const EarlyMatmulParams& p_;
  ChunkBlocks blocks_;
  bool has_x_;  ///< Units of x pass through the ring, too.
  std::uint32_t stage_bytes_;
  std::byte* stages_;
  SharedBarrier* barriers_;
  Position weights_;
  const std::byte* chunk_ = nullptr;  ///< The weights of the chunk in group weights_.tile.
  std::uint32_t n_filled_ = 0;
  std::uint32_t stage_ = 0;  ///< The next one to read.
  std::uint32_t phase_ = 0;
};

}  // namespace leasehold::device
