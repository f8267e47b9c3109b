/// Int8 rounding and dots on AVX2. RowKernels documents each function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/numerics/f16.hpp"
#include "kernels/quant/row_group.hpp"

namespace leasehold::avx2 {

[[gnu::target("avx2,fma,f16c")]] void round_row(const float* x, std::size_t n, std::uint32_t block,
                                                const RoundedRowBuffer& out);

[[gnu::target("avx2,fma,f16c")]] void round_kv(const float* values, std::size_t n, std::int8_t* q,
                                               Half* scales);

void dot_group_int8(TensorType type, const std::byte* group, std::uint32_t n_in,
                    const RoundedRow* x, std::uint32_t n_rows, float* out);

}  // namespace leasehold::avx2
