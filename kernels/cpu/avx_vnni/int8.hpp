/// Int8 dots on AVX-VNNI, which multiplies bytes as AVX-512 does, in registers of AVX2: two of them
/// hold an element quad of the sixteen rows of a group.
#pragma once

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::avx_vnni {

/// RowKernels::dot_groups_int8
void dot_groups_int8(const Int8Tile& tile);

}  // namespace leasehold::avx_vnni
