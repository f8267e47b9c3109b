/// Int8 dots on AVX-512 VNNI: one register holds an element quad of the sixteen rows of a group.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/row_group.hpp"

namespace leasehold::avx512 {

/// RowKernels::dot_group_int8
void dot_group_int8(TensorType type, const std::byte* group, std::uint32_t n_in,
                    const RoundedRow* x, std::uint32_t n_rows, float* out);

}  // namespace leasehold::avx512
