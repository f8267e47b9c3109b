/// Sums of an adapter's rows of B on AVX2, with the bits of the plain loops.
#pragma once

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::avx2 {

/// RowKernels::add_low_rank
void add_low_rank(const LowRankTile& tile);

}  // namespace leasehold::avx2
