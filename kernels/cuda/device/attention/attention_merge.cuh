/// The merge of a row's partial results, in ascending order of partitions, with the reference's
/// bits (kernels/numerics/attention_order.hpp).
///
/// Threads: the whole block calls each function.
#pragma once

#include "kernels/cuda/device/attention/attention_scores.cuh"
#include "kernels/cuda/device/tiles.cuh"

namespace leasehold::device {

/// The elements that a thread merges: up to four neighbours of one row and head.
struct MergedElements {
  std::uint32_t d;
  float out[4];
  float sum;
};

__device__ __forceinline__ void load_partial(const float* acc, std::uint32_t left, bool is_aligned,
                                             float (&out)[4]) {
  if (is_aligned) {
    const float4 all = *reinterpret_cast<const float4*>(acc);
    out[0] = all.x;
    out[1] = all.y;
    out[2] = all.z;
    out[3] = all.w;
    return;
  }
  for (std::uint32_t j = 0; j < 4; ++j) out[j] = j < left ? acc[j] : 0.0F;
}

/// Merges `count` more partitions, whose weights and sums the block has computed.
__device__ __forceinline__ void merge_chunk(const float* acc, const float2* weights,
                                            std::uint32_t count, std::uint32_t value_dim,
                                            MergedElements& merged) {
  const bool is_aligned = value_dim % 4 == 0;
#pragma unroll 4
  for (std::uint32_t i = 0; i < count; ++i) {
    float part[4];
    load_partial(acc + std::size_t{i} * value_dim + merged.d, value_dim - merged.d, is_aligned,
                 part);
    const float2 weight_and_sum = weights[i];
    merged.sum = fmaf(weight_and_sum.y, weight_and_sum.x, merged.sum);
    for (std::uint32_t j = 0; j < 4; ++j)
      merged.out[j] = fmaf(part[j], weight_and_sum.x, merged.out[j]);
  }
}

/// The heads of a row that a block merges, 32 partitions at a time: each lane computes the weight
/// of one partition.
struct MergedHeads {
  std::size_t first;  ///< Index of the row and first head in the partial results.
  std::uint32_t first_head;
  std::uint32_t n_heads;
  PartitionRange partitions;

  /// The index of partition `i` of the row's own, of a head of the block.
  __device__ std::size_t partial(const AttentionMergeParams& p, std::uint32_t head,
                                 std::uint32_t i) const {
    return (first + head) * p.partials.n_partitions + partitions.first + i;
  }
  __device__ float sink(const AttentionMergeParams& p, std::uint32_t head) const {
    return p.sinks != nullptr ? p.sinks[first_head + head] : __uint_as_float(0xff800000);
  }
};

/// What the threads of a merging block share, for each of its heads.
struct MergeShared {
  float2 (*weights)[kWarp];  ///< The weights and sums of up to 32 partitions.
  float* maxima;
};

__device__ __forceinline__ void find_maxima(const AttentionMergeParams& p, const MergedHeads& heads,
                                            float* maxima) {
  for (std::uint32_t head = warp_of_block(); head < heads.n_heads; head += blockDim.x / kWarp) {
    const float* max_sum = p.partials.max_sum + 2 * heads.partial(p, head, 0);
    float max = heads.sink(p, head);
    for (std::uint32_t i = lane_of_warp(); i < heads.partitions.count; i += kWarp)
      max = max_sum[2 * i] > max ? max_sum[2 * i] : max;
    max = warp_max(max);
    if (lane_of_warp() == 0) maxima[head] = max;
  }
}

__device__ __forceinline__ void find_weights(const AttentionMergeParams& p,
                                             const MergedHeads& heads, std::uint32_t first,
                                             const MergeShared& shared) {
  const std::uint32_t i = first + lane_of_warp();
  if (i >= heads.partitions.count) return;
  for (std::uint32_t head = warp_of_block(); head < heads.n_heads; head += blockDim.x / kWarp) {
    const float* max_sum = p.partials.max_sum + 2 * heads.partial(p, head, i);
    shared.weights[head][lane_of_warp()] = {exp_f32(max_sum[0] - shared.maxima[head]), max_sum[1]};
  }
}

/// Merges the heads and stores them. Returns the largest magnitude that the thread stored, as bits.
__device__ __forceinline__ std::uint32_t merge_heads(const AttentionMergeParams& p,
                                                     const MergedHeads& heads,
                                                     const MergeShared& shared, float* out) {
  const std::uint32_t quads = (p.value_dim + 3) / 4;
  std::uint32_t largest = 0;
  find_maxima(p, heads, shared.maxima);
  for (std::uint32_t base = 0; base < heads.n_heads * quads; base += blockDim.x) {
    const std::uint32_t unit = base + threadIdx.x;
    const std::uint32_t head = unit / quads;
    const bool has_work = head < heads.n_heads;
    MergedElements merged{unit % quads * 4, {}, 0.0F};
    for (std::uint32_t i = 0; i < heads.partitions.count; i += kWarp) {
      const std::uint32_t behind = heads.partitions.count - i;
      if (base == 0 || heads.partitions.count > kWarp) {  // else the weights are still there
        __syncthreads();
        find_weights(p, heads, i, shared);
        __syncthreads();
      }
      if (!has_work) continue;
      if (i == 0) merged.sum = exp_f32(heads.sink(p, head) - shared.maxima[head]);
      merge_chunk(p.partials.acc + heads.partial(p, head, i) * p.value_dim, shared.weights[head],
                  behind < kWarp ? behind : kWarp, p.value_dim, merged);
    }
    for (std::uint32_t j = 0; has_work && j < 4 && merged.d + j < p.value_dim; ++j) {
      const float value = merged.out[j] / merged.sum;
      out[(heads.first_head + head) * p.value_dim + merged.d + j] = value;
      largest = largest > magnitude_bits(value) ? largest : magnitude_bits(value);
    }
  }
  return largest;
}

}  // namespace leasehold::device
