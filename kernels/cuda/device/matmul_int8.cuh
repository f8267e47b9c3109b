/// Matmul of row groups in int8 arithmetic, with the bits of dot_group_int8. A block computes a
/// group of 16 outputs for up to 32 rows of x. Its threads divide the 8 chunks of a row, so each
/// chunk is added in its written order, and the chunks meet in shared memory.
///
/// Grid: x: groups, summed over segments; y: kColumns results each, or experts.
///
///   Int8Few    one or two rows: a thread has one output and one chunk, and multiplies with dp4a
///   Int8Many   8 or 32 rows: a warp has one chunk, and multiplies with mma
///
/// Bound by: reading the weights, for few rows. A word of 8 codes of 4 bits takes one load, three
/// instructions to unpack and two dp4a, with the words of x from cache: about one instruction per
/// element and row, where the kernel for halves takes six. A product of mma is followed by about
/// 16 instructions that convert and add its 128 sums, which bound a full tile: about 1400
/// multiply-adds per cycle and SM, where wgmma with halves reaches 2000. Counted in the source.
#pragma once

#include "kernels/cuda/device/matmul_columns.cuh"
#include "kernels/cuda/device/matmul_int8_params.hpp"
#include "kernels/cuda/device/row_groups.cuh"

namespace leasehold::device {

/// A rounded row of x.
struct Int8Row {
  const std::int8_t* q;
  const float* scales;
  const std::int16_t* sums;

  /// The sum of q of kCount elements from `first`; both are whole strips.
  template <std::uint32_t kCount>
  __device__ __forceinline__ std::int32_t sum(std::uint32_t first) const {
    std::int32_t all = sums[first / kInt8Strip];
    if constexpr (kCount == 2 * kInt8Strip) all += sums[first / kInt8Strip + 1];
    return all;
  }
};

/// The row of x of a column; columns beyond the list repeat its first one.
__device__ __forceinline__ Int8Row row_of_column(const Int8Rows& x, const ColumnList& list,
                                                 std::uint32_t column) {
  const std::size_t row = list.source[column < list.count ? column : 0];
  return {x.q + row * x.n_in, x.scales + row * (x.n_in / x.block),
          x.sums + row * (x.n_in / kInt8Strip)};
}

/// The blocks of a chunk.
struct ChunkBlocks {
  std::uint32_t begin, end;

  __device__ __forceinline__ ChunkBlocks(std::uint32_t n_blocks, std::uint32_t chunk) {
    const std::uint32_t per_chunk = int8_chunk_blocks(n_blocks);
    begin = chunk * per_chunk < n_blocks ? chunk * per_chunk : n_blocks;
    end = begin + per_chunk < n_blocks ? begin + per_chunk : n_blocks;
  }
};

/// Adds the results of a block to its chunk.
template <TensorType kType>
__device__ __forceinline__ float add_block(float chunk, float d, float m, float x_scale,
                                           std::int32_t s, std::int32_t t) {
  chunk = fmaf(d * x_scale, static_cast<float>(s), chunk);
  if constexpr (GroupShape<kType>::kHasMin) chunk = fmaf(m * x_scale, static_cast<float>(t), chunk);
  return chunk;
}

/// Where a chunk of one output and column is in shared memory.
template <std::uint32_t kColumns>
__device__ __forceinline__ std::uint32_t part_at(std::uint32_t chunk, std::uint32_t column,
                                                 std::uint32_t row) {
  return (chunk * kColumns + column) * kGroupRows + row;
}

template <TensorType kType, std::uint32_t kNumber>
struct Int8Few {
  using Shape = GroupShape<kType>;
  static constexpr std::uint32_t kColumns = kNumber;
  static constexpr std::uint32_t kWords = Shape::kSubBlock / kQuad;

  struct BlockSums {
    std::int32_t s[kColumns];
    std::int32_t t[kColumns];
  };

  __device__ __forceinline__ static std::int32_t product(const std::int32_t (&w)[kWords],
                                                         const std::int8_t* q) {
    std::int32_t sum = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < kWords; i += 4) {
      const uint4 x = *reinterpret_cast<const uint4*>(q + i * kQuad);
      sum = __dp4a(w[i], static_cast<std::int32_t>(x.x), sum);
      sum = __dp4a(w[i + 1], static_cast<std::int32_t>(x.y), sum);
      sum = __dp4a(w[i + 2], static_cast<std::int32_t>(x.z), sum);
      sum = __dp4a(w[i + 3], static_cast<std::int32_t>(x.w), sum);
    }
    return sum;
  }

  /// `first`: the first element of the sub-block in a row.
  __device__ __forceinline__ static void add_sub_block(BlockSums& sums, const GroupRow<kType>& w,
                                                       std::uint32_t sub, std::uint32_t first,
                                                       const Int8Row* x) {
    std::int32_t words[kWords];
#pragma unroll
    for (std::uint32_t i = 0; i < kWords; ++i) words[i] = w.quad(sub * kWords + i);
    const std::int32_t scale = w.scale(sub);
#pragma unroll
    for (std::uint32_t c = 0; c < kColumns; ++c) {
      std::int32_t sum = product(words, x[c].q + first);
      if constexpr (Shape::kOffset != 0)
        sum -= Shape::kOffset * x[c].template sum<Shape::kSubBlock>(first);
      sums.s[c] += scale * sum;
      if constexpr (Shape::kHasMin)
        sums.t[c] -= w.min(sub) * x[c].template sum<Shape::kSubBlock>(first);
    }
  }

  __device__ __forceinline__ static void multiply(const Int8MatmulParams& p, const ColumnList& list,
                                                  const std::byte* group, float* parts) {
    const std::uint32_t row = threadIdx.x % kGroupRows;
    const std::uint32_t chunk = threadIdx.x / kGroupRows;
    Int8Row x[kColumns];
    for (std::uint32_t c = 0; c < kColumns; ++c) x[c] = row_of_column(p.x, list, c);
    float chunks[kColumns] = {};
    const ChunkBlocks blocks(p.x.n_in / Shape::kElements, chunk);
    for (std::uint32_t b = blocks.begin; b < blocks.end; ++b) {
      const GroupRow<kType> w{group + std::size_t{b} * Shape::kBytes, row};
      BlockSums sums = {};
#pragma unroll
      for (std::uint32_t sub = 0; sub < Shape::kSubBlocks; ++sub)
        add_sub_block(sums, w, sub, b * Shape::kElements + sub * Shape::kSubBlock, x);
      const float m = Shape::kHasMin ? w.m() : 0.0F;
#pragma unroll
      for (std::uint32_t c = 0; c < kColumns; ++c)
        chunks[c] = add_block<kType>(chunks[c], w.d(), m, x[c].scales[b], sums.s[c], sums.t[c]);
    }
    for (std::uint32_t c = 0; c < kColumns; ++c)
      parts[part_at<kColumns>(chunk, c, row)] = chunks[c];
  }
};

/// Lane 4g + t has rows g and g + 8 of the group, and of each tile of 8 columns the sums of columns
/// 2t and 2t + 1 (the fragments of mma: simt.cuh).
template <TensorType kType, std::uint32_t kTiles>
struct Int8Many {
  using Shape = GroupShape<kType>;
  static constexpr std::uint32_t kColumns = kTiles * 8;
  static constexpr std::uint32_t kWords = Shape::kSubBlock / 8;  ///< Of rows g and g + 8.
  static constexpr bool kNeedsSums = Shape::kOffset != 0 || Shape::kHasMin;

  struct BlockSums {
    std::int32_t s[kTiles][4];
    std::int32_t t[kTiles][4];
  };
  struct Rows {
    GroupRow<kType> upper, lower;
  };
  /// What the lane reads of x.
  struct Columns {
    const std::int8_t* factors[kTiles];  ///< Of column g, from word t.
    Int8Row sums[kTiles][2];             ///< Of columns 2t and 2t + 1.
  };

  __device__ __forceinline__ static Columns columns_of(const Int8MatmulParams& p,
                                                       const ColumnList& list) {
    const std::uint32_t t = lane_of_warp() % 4;
    Columns columns;
#pragma unroll
    for (std::uint32_t tile = 0; tile < kTiles; ++tile) {
      columns.factors[tile] = row_of_column(p.x, list, tile * 8 + lane_of_warp() / 4).q + t * kQuad;
      for (std::uint32_t i = 0; i < 2; ++i)
        columns.sums[tile][i] = row_of_column(p.x, list, tile * 8 + 2 * t + i);
    }
    return columns;
  }

  __device__ __forceinline__ static void load_words(std::uint32_t (&a)[kWords], const Rows& w,
                                                    std::uint32_t sub) {
    const std::uint32_t first = sub * (Shape::kSubBlock / kQuad) + lane_of_warp() % 4;
#pragma unroll
    for (std::uint32_t i = 0; i < kWords; i += 2) {
      a[i] = static_cast<std::uint32_t>(w.upper.quad(first + 2 * i));
      a[i + 1] = static_cast<std::uint32_t>(w.lower.quad(first + 2 * i));
    }
  }

  __device__ __forceinline__ static void multiply_words(std::int32_t (&products)[4],
                                                        const std::uint32_t (&a)[kWords],
                                                        const std::int8_t* factors) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(factors);
    if constexpr (kWords == 2) {
      mma_int8_16x8x16(products, a, words[0]);
    } else {
      const std::uint32_t b[2] = {words[0], words[4]};
      mma_int8_16x8x32(products, a, b);
    }
  }

  /// `first`: the first element of the sub-block in a row.
  __device__ __forceinline__ static void add_sub_block(BlockSums& sums, const Columns& x,
                                                       const Rows& w, std::uint32_t sub,
                                                       std::uint32_t first) {
    std::uint32_t a[kWords];
    load_words(a, w, sub);
    const std::int32_t scales[2] = {w.upper.scale(sub), w.lower.scale(sub)};
    std::int32_t mins[2] = {};
    if constexpr (Shape::kHasMin) {
      mins[0] = w.upper.min(sub);
      mins[1] = w.lower.min(sub);
    }
#pragma unroll
    for (std::uint32_t tile = 0; tile < kTiles; ++tile) {
      std::int32_t products[4] = {};
      multiply_words(products, a, x.factors[tile] + first);
      std::int32_t x_sums[2] = {};
      if constexpr (kNeedsSums)
        for (std::uint32_t i = 0; i < 2; ++i)
          x_sums[i] = x.sums[tile][i].template sum<Shape::kSubBlock>(first);
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) {
        sums.s[tile][i] += scales[i / 2] * (products[i] - Shape::kOffset * x_sums[i % 2]);
        if constexpr (Shape::kHasMin) sums.t[tile][i] -= mins[i / 2] * x_sums[i % 2];
      }
    }
  }

  using Chunks = float[kTiles][4];

  __device__ __forceinline__ static void add_blocks(Chunks& chunks, const Columns& x, const Rows& w,
                                                    const BlockSums& sums, std::uint32_t b) {
    const float d[2] = {w.upper.d(), w.lower.d()};
    float m[2] = {};
    if constexpr (Shape::kHasMin) {
      m[0] = w.upper.m();
      m[1] = w.lower.m();
    }
#pragma unroll
    for (std::uint32_t tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i)
        chunks[tile][i] =
            add_block<kType>(chunks[tile][i], d[i / 2], m[i / 2], x.sums[tile][i % 2].scales[b],
                             sums.s[tile][i], sums.t[tile][i]);
  }

  __device__ __forceinline__ static void multiply(const Int8MatmulParams& p, const ColumnList& list,
                                                  const std::byte* group, float* parts) {
    const std::uint32_t g = lane_of_warp() / 4;
    const std::uint32_t chunk = warp_of_block();
    const Columns x = columns_of(p, list);
    Chunks chunks = {};
    const ChunkBlocks blocks(p.x.n_in / Shape::kElements, chunk);
    for (std::uint32_t b = blocks.begin; b < blocks.end; ++b) {
      const std::byte* const block = group + std::size_t{b} * Shape::kBytes;
      const Rows w{{block, g}, {block, g + 8}};
      BlockSums sums = {};
#pragma unroll 1
      for (std::uint32_t sub = 0; sub < Shape::kSubBlocks; ++sub)
        add_sub_block(sums, x, w, sub, b * Shape::kElements + sub * Shape::kSubBlock);
      add_blocks(chunks, x, w, sums, b);
    }
#pragma unroll
    for (std::uint32_t tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i)
        parts[part_at<kColumns>(chunk, tile * 8 + lane_of_warp() % 4 * 2 + i % 2, g + i / 2 * 8)] =
            chunks[tile][i];
  }
};

/// Adds the chunks that are not empty, from the left, and stores the results.
template <std::uint32_t kColumns>
__device__ __forceinline__ void store_chunks(const Int8MatmulParams& p, const ColumnList& list,
                                             const MatmulSegment& to, std::uint32_t group,
                                             const float* parts) {
  const std::uint32_t n_blocks = p.x.n_in / p.x.block;
  const std::uint32_t per_chunk = int8_chunk_blocks(n_blocks);
  for (std::uint32_t i = threadIdx.x; i < kColumns * kGroupRows; i += blockDim.x) {
    const std::uint32_t row = i % kGroupRows;
    const std::uint32_t column = i / kGroupRows;
    float dot = parts[part_at<kColumns>(0, column, row)];
    for (std::uint32_t chunk = 1; chunk * per_chunk < n_blocks; ++chunk)
      dot += parts[part_at<kColumns>(chunk, column, row)];
    store_product(to, list, column, group * kGroupRows + row, dot, p.accumulate != 0);
  }
}

/// Runs `Kernel` (Int8Few or Int8Many) for all columns of the block.
template <class Kernel>
__device__ __forceinline__ void matmul_int8(const Int8MatmulParams& p) {
  __shared__ ColumnList list;
  __shared__ float parts[kInt8Chunks * Kernel::kColumns * kGroupRows];
  const std::uint32_t end = result_count(p.gate, p.count);
  if (block_engine_is_stopped(p.gate)) return;
  start_columns<Kernel::kColumns>(list, p.experts);
  const MatmulSegment& of = segment_of_block(p);
  const std::uint32_t group = blockIdx.x - of.first_tile;
  const std::uint32_t n_groups = (of.n_out + kGroupRows - 1) / kGroupRows;
  const std::size_t index = std::size_t{expert_of_block(p.experts)} * n_groups + group;
  while (gather_columns<Kernel::kColumns>(list, p, end)) {
    Kernel::multiply(p, list, of.weights + index * p.group_bytes, parts);
    __syncthreads();
    store_chunks<Kernel::kColumns>(p, list, of, group, parts);
    if (p.experts.chosen == nullptr) return;
  }
}

}  // namespace leasehold::device

/// The kernels of one type, by rows of x.
#define LEASEHOLD_MATMUL_INT8(kType, name)                              \
  LEASEHOLD_KERNEL(lh_matmul_int8_##name##_1, Int8MatmulParams, 128) {  \
    matmul_int8<Int8Few<TensorType::kType, 1>>(p);                      \
  }                                                                     \
  LEASEHOLD_KERNEL(lh_matmul_int8_##name##_2, Int8MatmulParams, 128) {  \
    matmul_int8<Int8Few<TensorType::kType, 2>>(p);                      \
  }                                                                     \
  LEASEHOLD_KERNEL(lh_matmul_int8_##name##_8, Int8MatmulParams, 256) {  \
    matmul_int8<Int8Many<TensorType::kType, 1>>(p);                     \
  }                                                                     \
  LEASEHOLD_KERNEL(lh_matmul_int8_##name##_32, Int8MatmulParams, 256) { \
    matmul_int8<Int8Many<TensorType::kType, 4>>(p);                     \
  }
