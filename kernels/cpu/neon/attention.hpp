/// Attention on ARM64. RowKernels documents the function.
#pragma once

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::neon {

void attend(const AttentionTile& tile);

}  // namespace leasehold::neon
