/// Norms, rounding and scaled sums of rows on ARM64. RowKernels documents each function.
#pragma once

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::neon {

void round_row(const float* x, std::size_t n, std::uint32_t block, const RoundedRowBuffer& out);
void rms_norm_row(const NormRow& row);
void add_scaled(float weight, const float* x, float* out, std::size_t n);

}  // namespace leasehold::neon
