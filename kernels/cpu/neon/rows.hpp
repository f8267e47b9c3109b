/// Dots in f32 arithmetic on ARM64. RowKernels documents the function.
#pragma once

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::neon {

void dot_tile(const DotTile& tile, DotProducts& out);

}  // namespace leasehold::neon
