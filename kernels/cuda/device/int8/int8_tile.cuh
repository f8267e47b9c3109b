/// Many rows of x: a block multiplies four groups. Each group has two of the block's eight warps,
/// and each of these has half of the columns. All weights and elements of x pass through one ring
/// in shared memory, so a block reads each of them once.
///
/// The blocks of a split launch share the chunks of a row (int8_chunk_sums.cuh).
///
/// Bound by: instructions. A card executes 29 (Q4_K) to 35 (Q8_0) instructions for each mma
/// (kernels/MEASUREMENTS.md).
#pragma once

#include "kernels/cuda/device/int8/int8_chunk_sums.cuh"
#include "kernels/cuda/device/int8/int8_products.cuh"

namespace leasehold::device {

template <TensorType kType, std::uint32_t kColumns_>
struct Int8Tile {
  using Shape = GroupShape<kType>;
  static constexpr std::uint32_t kColumns = kColumns_;
  static constexpr Int8Ring kRing = int8_tile_ring(kType, kColumns);
  static constexpr Int8Unit kUnit = kRing.unit;
  static constexpr std::uint32_t kStages = kRing.stages;
  static constexpr std::uint32_t kStageBytes = kRing.stage_bytes();
  static constexpr std::uint32_t kScalesAt = kRing.scales_at();
  static constexpr std::uint32_t kGroups = kInt8TileGroups;
  static constexpr std::uint32_t kThreads = 256;
  static constexpr std::uint32_t kTiles = kColumns / 8 / 2;  ///< Tiles of a warp.
  using Products = Int8Products<kType, kTiles>;
  using Sums = typename Products::Sums;
  using Chunks = ChunkSums<kColumns, kGroups * kGroupRows>;

  // A copy moves kCopyBytes: this many copies bring the weights of one group, and one column of x.
  static constexpr std::uint32_t kOfGroup = kUnit.weight_bytes / kCopyBytes;
  static constexpr std::uint32_t kOfColumn = kUnit.x_bytes / kCopyBytes;
  static constexpr std::uint32_t kWeightCopies = (kGroups * kOfGroup + kThreads - 1) / kThreads;
  static constexpr std::uint32_t kXCopies = (kColumns * kOfColumn + kThreads - 1) / kThreads;
  static_assert(kUnit.blocks * kColumns <= kThreads, "a thread copies one scale");

  const Int8MatmulParams& p;
  const ColumnList& list;
  const std::byte* weights;  ///< The matrix.
  std::uint32_t first_group;
  std::uint32_t n_groups;
  std::uint32_t n_blocks;  ///< Blocks of a row.
  ChunkBlocks blocks;      ///< Those that this block multiplies.

  /// The sources of the thread's copies for the first unit; null: nothing to copy.
  struct Copies {
    const std::byte* weights[kWeightCopies];
    const std::int8_t* x[kXCopies];
    const float* scale;
  };

  __device__ __forceinline__ Copies copies() const {
    Copies from;
#pragma unroll
    for (std::uint32_t i = 0; i < kWeightCopies; ++i) {
      const std::uint32_t group = first_group + (threadIdx.x + i * kThreads) / kOfGroup;
      const bool is_wanted = threadIdx.x + i * kThreads < kGroups * kOfGroup && group < n_groups;
      from.weights[i] = is_wanted ? weights + group * p.group_bytes +
                                        (threadIdx.x + i * kThreads) % kOfGroup * kCopyBytes
                                  : nullptr;
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kXCopies; ++i) {
      const std::uint32_t column = (threadIdx.x + i * kThreads) / kOfColumn;
      const bool is_wanted = column < kColumns && column < list.count;
      from.x[i] = is_wanted ? p.x.q + std::size_t{list.source[column]} * p.x.n_in +
                                  (threadIdx.x + i * kThreads) % kOfColumn * kCopyBytes
                            : nullptr;
    }
    const std::uint32_t column = threadIdx.x % kColumns;
    const bool is_wanted = threadIdx.x < kUnit.blocks * kColumns && column < list.count;
    from.scale = is_wanted ? p.x.scales + first_block_of_column<kType>(p.x, list, column) +
                                 threadIdx.x / kColumns
                           : nullptr;
    return from;
  }

  /// Starts to copy the unit of n blocks that begins with block `first`.
  __device__ __forceinline__ static void copy(const Copies& from, std::uint32_t first,
                                              std::uint32_t n, std::byte* to) {
#pragma unroll
    for (std::uint32_t i = 0; i < kWeightCopies; ++i) {
      const std::uint32_t index = threadIdx.x + i * kThreads;
      const std::uint32_t at = index % kOfGroup * kCopyBytes;
      if (from.weights[i] != nullptr && at < n * Shape::kBytes)
        copy_async_16(to + index / kOfGroup * kUnit.weight_bytes + at,
                      from.weights[i] + std::size_t{first} * Shape::kBytes);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kXCopies; ++i) {
      const std::uint32_t index = threadIdx.x + i * kThreads;
      const std::uint32_t at = index % kOfColumn * kCopyBytes;
      if (from.x[i] != nullptr && at < n * Shape::kElements)
        copy_async_16(
            to + kGroups * kUnit.weight_bytes + index / kOfColumn * kUnit.column_stride + at,
            from.x[i] + first * Shape::kElements);
    }
    if (from.scale != nullptr && threadIdx.x / kColumns < n)
      copy_async_4(to + kScalesAt + threadIdx.x * sizeof(float), from.scale + first);
  }

  /// Starts to copy the unit from block `first` on, if there is one. Whole units are copied with a
  /// constant size.
  __device__ __forceinline__ void start(const Copies& from, std::uint32_t first,
                                        std::byte* to) const {
    if (first + kUnit.blocks <= blocks.end) {
      copy(from, first, kUnit.blocks, to);
    } else if (first < blocks.end) {
      copy(from, first, blocks.end - first, to);
    }
    copy_async_commit();
  }

  /// For ChunkSums.
  template <class Visit>
  __device__ __forceinline__ static void for_each(Sums& totals, Visit&& visit) {
#pragma unroll
    for (std::uint32_t tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i)
        visit(totals[tile][i], own_column() + Products::column_of(tile, i),
              own_group() * kGroupRows + Products::row_of(i));
  }
  __device__ __forceinline__ static void fold(Sums& totals, Sums& sums, bool is_first) {
#pragma unroll
    for (std::uint32_t tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) {
        totals[tile][i] = is_first ? sums[tile][i] : totals[tile][i] + sums[tile][i];
        sums[tile][i] = 0.0F;
      }
  }

  __device__ __forceinline__ static std::uint32_t own_group() { return warp_of_block() % kGroups; }
  __device__ __forceinline__ static std::uint32_t own_column() {
    return warp_of_block() / kGroups * kTiles * 8;
  }

  __device__ __forceinline__ void multiply(Sums& totals, const Chunks& chunks) const {
    const Products products(p.x, list, own_column());
    const Copies from = copies();
    const std::uint32_t per_chunk = int8_chunk_blocks(n_blocks);
    constexpr std::uint32_t kAhead = kStages - 1;
    std::byte* const ring = dynamic_shared();
#pragma unroll 1
    for (std::uint32_t i = 0; i < kAhead; ++i)
      start(from, blocks.begin + i * kUnit.blocks, ring + i * kStageBytes);
    std::uint32_t stage = 0;
    std::uint32_t in_chunk = 0;
    std::uint32_t chunk = blockIdx.z * Chunks::chunks_of_block();
    Sums sums = {};
    const auto end_chunk = [&] {
      chunks.end_chunk(
          chunk++, [&](bool is_first) { fold(totals, sums, is_first); },
          [&](auto&& visit) { for_each(totals, visit); });
      in_chunk = 0;
    };
    for (std::uint32_t first = blocks.begin; first < blocks.end; first += kUnit.blocks) {
      copy_async_wait<static_cast<int>(kStages) - 2>();
      __syncthreads();  // the unit has arrived, and all warps are done with the previous one
      const std::uint32_t before = stage == 0 ? kAhead : stage - 1;
      start(from, first + kAhead * kUnit.blocks, ring + before * kStageBytes);
      const std::byte* const unit = ring + stage * kStageBytes;
      const StagedBlock begin = {
          unit + own_group() * kUnit.weight_bytes,
          unit + kGroups * kUnit.weight_bytes + own_column() * kUnit.column_stride,
          kUnit.column_stride, reinterpret_cast<const float*>(unit + kScalesAt) + own_column(),
          first};
#pragma unroll(kTiles <= 2 ? 2 : 1)
      for (std::uint32_t i = 0; i < kUnit.blocks && first + i < blocks.end; ++i) {
        products.add(sums, {begin.weights + i * Shape::kBytes, begin.x + i * Shape::kElements,
                            begin.column_stride, begin.scales + i * kColumns, first + i});
        if (++in_chunk == per_chunk) end_chunk();
      }
      stage = stage == kAhead ? 0 : stage + 1;
    }
    if (in_chunk > 0) end_chunk();
    copy_async_wait<0>();
  }

  __device__ __forceinline__ void run(const MatmulSegment& to) const {
    const Chunks chunks{p, list, n_blocks};
    Sums totals = {};
    multiply(totals, chunks);
    const auto all = [&](auto&& visit) { for_each(totals, visit); };
    if (!chunks.complete(all)) return;
    all([&](float total, std::uint32_t column, std::uint32_t row) {
      store_product(p, to, list, column, first_group * kGroupRows + row, total);
    });
  }
};

}  // namespace leasehold::device
