/// Attention on AVX2, in the order of kernels/numerics/attention_order.hpp.
#pragma once

#include <cstdint>

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::avx2 {

/// RowKernels::attend
void attend(const AttentionTile& tile);

/// The same bits as merge_partials.
[[gnu::target("avx2,fma,f16c")]] void merge(const float* partials,  // [count, partial_floats]
                                            std::uint32_t count, std::uint32_t head_dim, float sink,
                                            float* out);  // [head_dim]

}  // namespace leasehold::avx2
