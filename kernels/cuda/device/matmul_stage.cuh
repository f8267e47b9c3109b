/// Copies weights and x through shared memory, a chunk of columns at a time.
///
/// A stage holds x first, [tiles][columns / 8] cores, then the slots of the weights, one per row.
/// Copies are asynchronous and 16 bytes wide. A copy of weights is an aligned unit that holds a
/// wanted byte; a copy of x is one row of a core. So bytes in flight use no registers, rows of x
/// may be gathered, and unused rows cost nothing: their columns hold garbage, which does not reach
/// other columns.
#pragma once

#include "kernels/cuda/device/dequantize.cuh"
#include "kernels/cuda/device/matmul_columns.cuh"

namespace leasehold::device {

/// Rows of weights per warp: the 16 of an mma.
inline constexpr std::uint32_t kWarpRows = 16;

/// The rows of one warp. Rows beyond the matrix repeat its last row; their results are dropped.
struct WarpWeights {
  const std::byte* weights;  ///< [n_out] rows of row_bytes
  std::uint64_t row_bytes;
  std::uint32_t first_row;
  std::uint32_t n_out;

  __device__ __forceinline__ const std::byte* row(std::uint32_t i) const {
    const std::uint32_t row = first_row + i < n_out ? first_row + i : n_out - 1;
    return weights + row * row_bytes;
  }
  /// Whether every row begins at a multiple of 16 bytes.
  __device__ __forceinline__ bool is_aligned() const {
    return (reinterpret_cast<std::uintptr_t>(weights) | row_bytes) % kCopyBytes == 0;
  }
};

/// The offset from a multiple of 16 bytes.
template <TensorType kType>
__device__ __forceinline__ std::uint32_t skew_of(const std::byte* at) {
  if constexpr (kWeightChunk<kType>.alignment == kCopyBytes) return 0;
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at)) % kCopyBytes;
}

/// Copies the warp's 16 rows of a chunk to shared memory. Each lane copies the same units of every
/// chunk.
template <TensorType kType>
struct WeightCopies {
  static constexpr WeightChunk kChunk = kWeightChunk<kType>;
  static constexpr std::uint32_t kAll = kWarpRows * kChunk.units;
  static constexpr std::uint32_t kOfLane = (kAll + kWarp - 1) / kWarp;

  const std::byte* from[kOfLane];  ///< The first byte of the row.
  std::uint64_t row_bytes;

  __device__ __forceinline__ explicit WeightCopies(const WarpWeights& of)
      : row_bytes(of.row_bytes) {
#pragma unroll
    for (std::uint32_t i = 0; i < kOfLane; ++i)
      from[i] = of.row((lane_of_warp() + i * kWarp) / kChunk.units % kWarpRows);
  }

  __device__ __forceinline__ void start(std::byte* slots, std::uint32_t chunk) const {
    const std::uint64_t first = std::uint64_t{chunk} * kChunk.bytes;
    const bool is_whole =
        kChunk.block_elements == kChunk.columns || first + kChunk.bytes <= row_bytes;
    const auto bytes = is_whole ? kChunk.bytes : static_cast<std::uint32_t>(row_bytes - first);
#pragma unroll
    for (std::uint32_t i = 0; i < kOfLane; ++i) {
      const std::uint32_t index = lane_of_warp() + i * kWarp;
      const std::uint32_t unit = index % kChunk.units * kCopyBytes;
      const std::byte* begin = from[i] + first;
      const std::uint32_t skew = skew_of<kType>(begin);
      if (index < kAll && unit < skew + bytes)
        copy_async_16(slots + index / kChunk.units * kChunk.slot_bytes + unit, begin - skew + unit);
    }
  }
};

/// The start of row i's chunk in the warp's slots.
template <TensorType kType>
__device__ __forceinline__ const std::byte* staged_row(const std::byte* slots,
                                                       const WarpWeights& of, std::uint32_t i,
                                                       std::uint32_t chunk) {
  constexpr WeightChunk kChunk = kWeightChunk<kType>;
  const std::byte* slot = slots + i * kChunk.slot_bytes;
  return slot + skew_of<kType>(of.row(i) + std::uint64_t{chunk} * kChunk.bytes);
}

/// Copies kColumns columns of the listed rows, with the whole block of kThreads. A thread copies
/// the same row of every tile, and cores at even distances. So it computes its addresses once per
/// tile, and neighbouring threads copy neighbouring bytes.
template <std::uint32_t kThreads, std::uint32_t kRows, std::uint32_t kColumns>
__device__ __forceinline__ void copy_x(std::byte* stage, const TileRows& x, const ColumnList& list,
                                       std::uint32_t chunk) {
  constexpr std::uint32_t kCores = kColumns / kTileColumns;
  constexpr std::uint32_t kAtOnce = kThreads / kTileRows;  // cores
  constexpr std::uint32_t kCoresAtOnce = kAtOnce < kCores ? kAtOnce : kCores;
  constexpr std::uint32_t kTilesAtOnce = kAtOnce / kCoresAtOnce;
  static_assert(kCores % kCoresAtOnce == 0 && kRows / kTileRows % kTilesAtOnce == 0);
  constexpr std::uint32_t kCoreBytes = kCoreHalves * 2;
  const std::uint32_t own_core = threadIdx.x / kTileRows % kCoresAtOnce;
  const std::uint32_t own_tile = threadIdx.x / kTileRows / kCoresAtOnce;
  const std::uint32_t own_row = threadIdx.x % kTileRows;
  const std::uint32_t group_bytes = padded_columns(x.n_in) * kTileRows * 2;
  const std::byte* const from = reinterpret_cast<const std::byte*>(x.halves) +
                                std::size_t{chunk * kCores + own_core} * kCoreBytes;
  std::byte* const to = stage + ((own_tile * kCores + own_core) * kTileRows + own_row) * kCopyBytes;
  const std::uint32_t count = list.count;
#pragma unroll
  for (std::uint32_t tile = 0; tile < kRows / kTileRows; tile += kTilesAtOnce) {
    const std::uint32_t column = (tile + own_tile) * kTileRows + own_row;
    if (column >= count) continue;
    const std::uint32_t source = list.source[column];
    const std::byte* const row =
        from + source % kTileRows * kCopyBytes + std::size_t{source / kTileRows} * group_bytes;
#pragma unroll
    for (std::uint32_t c = 0; c < kCores; c += kCoresAtOnce)
      copy_async_16(to + (tile * kCores + c) * kCoreBytes, row + c * kCoreBytes);
  }
}

/// Word `lane` of a core, as mma reads it.
__device__ __forceinline__ std::uint32_t core_word(const std::byte* core) {
  return reinterpret_cast<const std::uint32_t*>(core)[lane_of_warp()];
}

/// The fragments of a group of 32: two half-steps, rows g and g + 8 of the warp.
struct GroupFragments {
  std::uint32_t a[2][4];
};

/// The start of rows g and g + 8 of a chunk in shared memory, and the number of elements from there
/// to the end of the row.
struct StagedRows {
  const std::byte* upper;
  const std::byte* lower;
  std::uint32_t left;
};

template <TensorType kType>
__device__ __forceinline__ StagedRows staged_rows(const std::byte* slots, const WarpWeights& of,
                                                  std::uint32_t chunk, std::uint32_t n_in) {
  const std::uint32_t g = lane_of_warp() / 4;
  return {staged_row<kType>(slots, of, g, chunk), staged_row<kType>(slots, of, g + 8, chunk),
          n_in - chunk * kWeightChunk<kType>.columns};
}

/// Whether the fast path through a chunk applies: no element is missing, and 16-bit elements are
/// aligned.
template <TensorType kType>
__device__ __forceinline__ bool is_plain(const StagedRows& rows, const WarpWeights& of) {
  constexpr WeightChunk kChunk = kWeightChunk<kType>;
  if constexpr (kChunk.block_elements == kChunk.columns) return true;
  return rows.left >= kChunk.columns && (kChunk.block_elements > 1 || of.is_aligned());
}

template <TensorType kType, bool kIsPlain>
__device__ __forceinline__ GroupFragments load_group(const StagedRows& rows, std::uint32_t group) {
  const std::uint32_t t = lane_of_warp() % 4;
  std::uint32_t g[4], g_plus_8[4];
  load8<kType, kIsPlain>(g, rows.upper, group, t, rows.left);
  load8<kType, kIsPlain>(g_plus_8, rows.lower, group, t, rows.left);
  return {{{g[0], g_plus_8[0], g[1], g_plus_8[1]}, {g[2], g_plus_8[2], g[3], g_plus_8[3]}}};
}

/// Runs `Kernel` (FewRows or ManyRows) for all columns of the block.
template <class Kernel>
__device__ __forceinline__ void run_matmul(const MatmulParams& p) {
  const std::uint32_t end = result_count(p.gate, p.count);
  if (block_engine_is_stopped(p.gate)) return;
  auto& list = *reinterpret_cast<ColumnList*>(dynamic_shared());
  start_columns<Kernel::kColumns>(list, p.experts);
  const MatmulSegment& of = segment_of_block(p);
  const WarpWeights weights = {
      .weights = of.weights + expert_of_block(p.experts) * of.n_out * p.row_bytes,
      .row_bytes = p.row_bytes,
      .first_row = (blockIdx.x - of.first_tile) * Kernel::kRows + warp_of_block() * kWarpRows,
      .n_out = of.n_out};
  const Kernel kernel = {.p = p,
                         .list = list,
                         .ring = dynamic_shared() + kListBytes,
                         .weights = weights,
                         .copies = decltype(Kernel::copies)(weights)};
  while (gather_columns<Kernel::kColumns>(list, p, end)) {
    kernel.run();
    if (!p.experts.has_several()) return;
  }
}

}  // namespace leasehold::device
