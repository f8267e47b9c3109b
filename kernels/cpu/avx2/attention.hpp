/// Attention over one partition on AVX2, in the order of kernels/numerics/attention_order.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/numerics/attention_order.hpp"
#include "kernels/op_args.hpp"

namespace leasehold::avx2 {

inline constexpr std::uint32_t kPartitionBlocks = kPartitionPositions / KvLayout::kBlockTokens;

/// One row and head against up to 256 positions.
struct Partition {
  const float* q;  // [head_dim]
  std::uint32_t head_dim;
  float scale;
  KvType type;
  std::uint32_t n_positions;                  // 1 … kPartitionPositions
  const std::byte* keys[kPartitionBlocks];    // each [kBlockTokens, head_dim] of `type`
  const std::byte* values[kPartitionBlocks];  // likewise
};

[[gnu::target("avx2,fma,f16c")]] void attend(const Partition& partition,
                                             float* partial);  // [partial_floats(head_dim)]

/// merge_partials, the same bits.
[[gnu::target("avx2,fma,f16c")]] void merge(const float* partials,  // [count, partial_floats]
                                            std::uint32_t count, std::uint32_t head_dim,
                                            float* out);  // [head_dim]

}  // namespace leasehold::avx2
