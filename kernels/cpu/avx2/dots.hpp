/// Dots of weight rows with inputs on AVX2 + FMA + F16C, with the bits of the plain loops.
#pragma once

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::avx2 {

/// RowKernels::dot_tile
[[gnu::target("avx2,fma,f16c")]] void dot_tile(const DotTile& tile, DotProducts& out);

}  // namespace leasehold::avx2
