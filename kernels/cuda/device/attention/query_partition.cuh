/// Attention of one query over one partition, with the reference's bits. Each warp copies what it
/// reads itself: the rows of its keys, then 32 elements of every value. So all of a partition is in
/// flight at once, and the block waits at two barriers only: around the softmax.
///
/// A block of few positions in shared memory copies the rest in rounds; see tile_positions.
///
/// Threads: the whole block calls each function; kQueryThreads.
#pragma once

#include "kernels/cuda/device/attention/attention_partition.cuh"

namespace leasehold::device {

inline constexpr std::uint32_t kQueryWarps = kQueryThreads / kWarp;
/// The elements of a value that a warp sums, one per lane; they share a scale of Q8_0.
inline constexpr std::uint32_t kWarpElements = kWarp;
static_assert(kWarpElements == kKvScaleBlock);
static_assert(kQueryWarps * kWarpElements >= kSpans * kValueSpan);

/// Loads the first element of row i as a float.
__device__ __forceinline__ float load_element(const KvRows<std::uint16_t>& rows, std::uint32_t i) {
  return half_value(rows.elements[i * rows.stride]);
}
__device__ __forceinline__ float load_element(const KvRows<float>& rows, std::uint32_t i) {
  return rows.elements[i * rows.stride];
}
__device__ __forceinline__ float load_element(const KvRows<std::int8_t>& rows, std::uint32_t i) {
  return kv_value(rows.elements[i * rows.stride], half_value(rows.scales[i * rows.n_scales]));
}

/// The rows of one warp: copies them, waits for them, and computes with them.
template <class Stored>
struct WarpRows {
  const AttentionParams& p;
  const std::uint64_t* blocks;  ///< [kPartitionBlocks]
  const AttentionShared& shared;
  const NewestRows& newest;
  std::uint32_t begin;  ///< The first position to copy, at the start of a block.
  std::uint32_t end;

  __device__ std::uint32_t rounds() const {
    return (end - begin + p.tile_positions - 1) / p.tile_positions;
  }
  __device__ std::uint32_t stride() const {
    return kv_row_stride_bytes(p.head_dim, kStoredAs<Stored>);
  }
  __device__ std::byte* value_rows() const {
    const std::uint32_t bytes = p.tile_positions * kv_position_bytes(p.head_dim, kStoredAs<Stored>);
    return shared.rows + (p.n_buffers - 1) * bytes;
  }
  /// The scales of all values of the partition, behind the buffers.
  __device__ std::byte* value_scales() const {
    return value_rows() + p.tile_positions * kv_position_bytes(p.head_dim, kStoredAs<Stored>);
  }
  __device__ std::uint32_t keys_per_round() const { return p.tile_positions / kQueryWarps; }
  /// The first of the warp's keys in the buffer.
  __device__ std::uint32_t first_row() const { return warp_of_block() * keys_per_round(); }

  __device__ KvSpan limited(std::uint32_t plane, std::uint32_t first, std::uint32_t most) const {
    const std::uint32_t left = first < end ? end - first : 0;
    return {plane, first, left < most ? left : most};
  }
  __device__ KvSpan keys(std::uint32_t round) const {
    return limited(0, begin + round * p.tile_positions + first_row(), keys_per_round());
  }
  __device__ KvSpan values(std::uint32_t round) const {
    return limited(1, begin + round * p.tile_positions, p.tile_positions);
  }
  __device__ std::uint32_t first_element() const { return warp_of_block() * kWarpElements; }

  __device__ void start_keys(std::uint32_t round) const {
    const KvSpan span = keys(round);
    if (span.count == 0) return;
    const KvCopiers lanes{lane_of_warp(), kWarp, 0, 8 * octets(p.head_dim)};
    load_kv_rows<Stored>(p, blocks, span, shared.rows + first_row() * stride(), lanes);
    if constexpr (kHasScales<Stored>)
      load_kv_scales(p, blocks, span,
                     shared.rows + scales_offset_bytes(p) +
                         first_row() * kv_scales_bytes(p.head_dim, KvType::Q8_0),
                     lanes);
  }
  __device__ void start_values(std::uint32_t round) const {
    const std::uint32_t width = 8 * octets(p.head_dim);
    if (first_element() >= p.value_dim) return;
    const std::uint32_t left = width - first_element();
    load_kv_rows<Stored>(
        p, blocks, values(round), value_rows(),
        {lane_of_warp(), kWarp, first_element(), left < kWarpElements ? left : kWarpElements});
  }
  /// The whole block copies; the barrier after the scores covers it.
  __device__ void start_value_scales() const {
    if constexpr (kHasScales<Stored>)
      load_kv_scales(p, blocks, {1, begin, end - begin}, value_scales(), block_copiers(p));
  }

  /// Replaces elements of the newest row, if a span has it.
  __device__ void put_newest(const KvSpan& span, std::uint32_t first, std::uint32_t most,
                             std::byte* rows, std::byte* scales) const {
    if (newest.heads == nullptr || newest.position < span.first ||
        newest.position >= span.first + span.count || first >= p.head_dim)
      return;
    const std::uint32_t row = newest.position - span.first;
    const std::uint32_t left = p.head_dim - first;
    store_head(newest.heads + span.plane * 8 * octets(p.head_dim) + first,
               left < most ? left : most, reinterpret_cast<Stored*>(rows + row * stride()) + first,
               reinterpret_cast<Half*>(scales) + (row * p.head_dim + first) / kKvScaleBlock);
    __syncwarp();
  }

  /// Scores the warp's keys of a round, which have arrived: a lane has a key.
  __device__ void score(std::uint32_t round) const {
    const KvSpan span = keys(round);
    if (span.count == 0) return;
    __syncwarp();
    std::byte* const rows = shared.rows + first_row() * stride();
    put_newest(span, 0, p.head_dim, rows,
               shared.rows + scales_offset_bytes(p) +
                   first_row() * kv_scales_bytes(p.head_dim, KvType::Q8_0));
    for (std::uint32_t i = lane_of_warp(); i < span.count; i += kWarp) {
      float out[1];
      dots<Stored, 1>(kv_rows<Stored>(p, shared.rows, first_row() + i, 0), shared.queries,
                      octets(p.head_dim), out);
      shared.scores[span.first + i] = score_of(p, out[0]);
    }
    __syncwarp();
  }

  /// The warp's elements of the values of a round, from its first row on.
  __device__ KvRows<Stored> elements(const KvSpan& span) const {
    const std::uint32_t element = first_element() + lane_of_warp();
    const auto* at = reinterpret_cast<const Stored*>(value_rows()) + element;
    if constexpr (kHasScales<Stored>) {
      const std::uint32_t n_scales = p.head_dim / kKvScaleBlock;
      const auto* scales = reinterpret_cast<const std::uint16_t*>(value_scales());
      return {at, stride(),
              scales + (span.first - begin) * n_scales + first_element() / kKvScaleBlock, n_scales};
    } else {
      return {at, stride() / static_cast<std::uint32_t>(sizeof(Stored))};
    }
  }
  /// Adds the positions [skips, reads) of a round, which have arrived: a lane has an element.
  __device__ void add(std::uint32_t round, std::uint32_t skips, std::uint32_t reads,
                      float& sum) const {
    if (first_element() >= p.value_dim) return;
    const KvSpan span = values(round);
    __syncwarp();
    put_newest(span, first_element(), kWarpElements, value_rows(),
               value_scales() + (span.first - begin) * kv_scales_bytes(p.head_dim, KvType::Q8_0));
    const std::uint32_t first = skips > span.first ? skips - span.first : 0;
    const std::uint32_t read = reads > span.first ? reads - span.first : 0;
    const std::uint32_t last = read < span.count ? read : span.count;
    if (first_element() + lane_of_warp() < p.value_dim)
      add_positions(elements(span), shared.scores + span.first, first, last, sum);
    __syncwarp();
  }

 private:
  /// Adds positions [first, last) of a span, whose weights begin at a multiple of 16 bytes.
  __device__ static void add_positions(const KvRows<Stored>& rows, const float* weights,
                                       std::uint32_t first, std::uint32_t last, float& sum) {
    std::uint32_t i = first;
    for (; i < last && i % 4 != 0; ++i) sum = fmaf(weights[i], load_element(rows, i), sum);
#pragma unroll 4
    for (; i + 4 <= last; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(weights + i);
      sum = fmaf(four.x, load_element(rows, i), sum);
      sum = fmaf(four.y, load_element(rows, i + 1), sum);
      sum = fmaf(four.z, load_element(rows, i + 2), sum);
      sum = fmaf(four.w, load_element(rows, i + 3), sum);
    }
    for (; i < last; ++i) sum = fmaf(weights[i], load_element(rows, i), sum);
  }
};

/// Computes the partial result of the tile's only query. `fill_queries` fills `shared.queries`, and
/// the newest rows, while keys are copied.
template <class Stored, class FillQueries>
__device__ __forceinline__ void attend_query(const AttentionParams& p, const AttentionTile& tile,
                                             const AttentionShared& shared,
                                             const NewestRows& newest, FillQueries&& fill_queries) {
  __shared__ std::uint64_t blocks[kPartitionBlocks];
  find_blocks(p, tile, blocks);
  __syncthreads();
  const WarpRows<Stored> rows{p,
                              blocks,
                              shared,
                              newest,
                              tile.first_skips / KvLayout::kBlockTokens * KvLayout::kBlockTokens,
                              tile.last_reads};
  rows.start_keys(0);
  rows.start_value_scales();
  copy_async_commit();
  const bool has_own_values = p.n_buffers > 1;
  if (has_own_values) rows.start_values(0);
  copy_async_commit();
  fill_queries();
  copy_async_wait<1>();
  __syncthreads();
  rows.score(0);
  for (std::uint32_t round = 1; round < rows.rounds(); ++round) {
    rows.start_keys(round);
    copy_async_commit();
    copy_async_wait<0>();
    rows.score(round);
  }
  __syncthreads();
  if (!has_own_values) rows.start_values(0);
  copy_async_commit();
  softmax_weights(p, tile, shared.scores);
  copy_async_wait<0>();
  __syncthreads();
  float sum = 0.0F;
  for (std::uint32_t round = 0; round < rows.rounds(); ++round) {
    if (round > 0) {
      rows.start_values(round);
      copy_async_commit();
      copy_async_wait<0>();
    }
    rows.add(round, tile.first_skips, tile.first_reads, sum);
  }
  const std::uint32_t element = rows.first_element() + lane_of_warp();
  if (tile.first_reads > tile.first_skips && element < p.value_dim)
    p.partials.acc[partial_of(p, tile, 0) * p.value_dim + element] = sum;
}

}  // namespace leasehold::device
