/// Attention tiles on AVX-512, in the order of kernels/numerics/attention_order.hpp.
#pragma once

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::avx512 {

/// RowKernels::attend
void attend(const AttentionTile& tile);

/// RowKernels::merge
[[gnu::target("avx512f,avx512dq,avx2,fma")]] void merge(const float* partials, std::uint32_t count,
                                                        std::uint32_t head_dim, float sink,
                                                        float* out);

}  // namespace leasehold::avx512
