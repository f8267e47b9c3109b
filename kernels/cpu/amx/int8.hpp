/// Int8 dots on AMX: a tile instruction multiplies up to sixteen rows of x with a group.
#pragma once

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::amx {

/// Fewer rows use AVX-512, which multiplies up to eight rows in one pass; memory limits both.
inline constexpr std::uint32_t kLeastTileRows = 9;

/// RowKernels::dot_groups_int8. Precondition: missing(support()) is empty.
void dot_groups_int8(const Int8Tile& tile);
/// RowKernels::end_int8_unit
void end_int8_unit();

}  // namespace leasehold::amx
