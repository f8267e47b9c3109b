/// Attention tiles on AVX-512, in the order of kernels/numerics/attention_order.hpp.
#pragma once

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::avx512 {

/// RowKernels::attend
void attend(const AttentionTile& tile);

}  // namespace leasehold::avx512
