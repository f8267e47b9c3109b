/// Dots on AVX-512: two registers are the 32 lanes of the written order.
#pragma once

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::avx512 {

/// RowKernels::dot_tile
void dot_tile(const DotTile& tile, DotProducts& out);

}  // namespace leasehold::avx512
