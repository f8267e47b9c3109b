/// Int8 dots on AVX-512 VNNI: one register holds an element quad of the sixteen rows of a group.
#pragma once

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::avx512 {

/// RowKernels::dot_groups_int8
void dot_groups_int8(const Int8Tile& tile);
/// RowKernels::store_dots
void store_dots(const DotStore& store);

}  // namespace leasehold::avx512
