/// Dots on AVX-512: two registers are the 32 lanes of the written order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leasehold::avx512 {

/// RowKernels::dot_group
[[gnu::target("avx512f,avx512dq,avx2,fma")]] void dot_group(const float* w, const float* const* x,
                                                            std::uint32_t n_rows, std::size_t n,
                                                            float* out);

}  // namespace leasehold::avx512
