/// Int8 dots on ARM64 with the dot products of ARMv8.2: an instruction adds the products of four
/// elements of four rows. RowKernels documents each function.
#pragma once

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::neon {

void dot_groups_int8(const Int8Tile& tile);

}  // namespace leasehold::neon
