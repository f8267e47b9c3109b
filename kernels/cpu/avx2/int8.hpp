/// Int8 rounding and dots on AVX2. RowKernels documents each function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/row_kernels.hpp"
#include "kernels/numerics/f16.hpp"

namespace leasehold::avx2 {

[[gnu::target("avx2,fma,f16c")]] void round_row(const float* x, std::size_t n, std::uint32_t block,
                                                const RoundedRowBuffer& out);

[[gnu::target("avx2,fma,f16c")]] void round_kv(const float* values, std::size_t n, std::int8_t* q,
                                               Half* scales);

void dot_groups_int8(const Int8Tile& tile);

}  // namespace leasehold::avx2
