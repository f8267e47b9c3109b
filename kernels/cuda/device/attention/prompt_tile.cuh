/// The register tile of prompts: 32 queries of a block against one partition.
///
/// Shared memory holds the queries, their scores, and two buffers of keys or values. Scores are
/// [256 positions][32 queries], so that a thread reads the weights of eight queries as two words of
/// 16 bytes. Queries are [pairs of elements][4 pairs of rows][4 groups][2 rows][2 elements]: a
/// thread reads a pair of elements of its eight queries as four such words.
///
/// Threads: the whole block calls each function.
#pragma once

#include "kernels/cuda/device/attention/attention_partition.cuh"

namespace leasehold::device {

inline constexpr std::uint32_t kPromptGroups = kPromptQueries / kPromptRows;
static_assert(kPromptGroups == 4 && kPromptRows == 8, "the layout of queries");

/// What the threads of a block share. A query reads positions [skips, reads) of the partition.
struct PromptShared {
  float* queries;
  float* scores;
  std::byte* rows;
  std::uint32_t* skips;
  std::uint32_t* reads;
};

__device__ __forceinline__ PromptShared prompt_shared(const AttentionParams& p,
                                                      std::uint32_t* skips, std::uint32_t* reads) {
  PromptShared shared;
  shared.queries = reinterpret_cast<float*>(dynamic_shared());
  shared.scores = shared.queries + 4 * octets(p.head_dim) * kPromptPairStride;
  shared.rows = reinterpret_cast<std::byte*>(shared.scores + kPromptQueries * kPartitionPositions);
  shared.skips = skips;
  shared.reads = reads;
  return shared;
}

/// Stores the queries, and the positions that each reads. Missing queries and elements are zero.
__device__ __forceinline__ void load_prompt_queries(const AttentionParams& p,
                                                    const AttentionTile& tile,
                                                    const PromptShared& shared) {
  const std::uint32_t n = tile.n_queries();
  if (threadIdx.x < kPromptQueries) {
    shared.skips[threadIdx.x] = query_skips(p, tile, threadIdx.x);
    shared.reads[threadIdx.x] = query_reads(p, tile, threadIdx.x);
  }
  const std::uint32_t units = 4 * octets(p.head_dim) * kPromptQueries;
  for (std::uint32_t unit = threadIdx.x; unit < units; unit += blockDim.x) {
    const std::uint32_t query = unit / 4 % kPromptQueries;
    const std::uint32_t pair = unit % 4 + unit / (4 * kPromptQueries) * 4;
    const float* from = query_of(p, tile, query);
    float2 both{0.0F, 0.0F};
    if (query < n && 2 * pair < p.head_dim) both.x = from[2 * pair];
    if (query < n && 2 * pair + 1 < p.head_dim) both.y = from[2 * pair + 1];
    const std::uint32_t group = query / kPromptRows;
    const std::uint32_t word = query % kPromptRows / 2 * kPromptGroups + group;
    *reinterpret_cast<float2*>(shared.queries + pair * kPromptPairStride + word * 4 +
                               query % 2 * 2) = both;
  }
}

}  // namespace leasehold::device
