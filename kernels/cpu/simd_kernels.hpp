/// The SIMD paths of the CPU that the build is for: simd_kernels.cpp on x86-64, neon_kernels.cpp
/// on ARM64, no_simd_kernels.cpp on others. row_kernels.cpp calls these functions for every path
/// except the scalar one, and declares their contracts.
#pragma once

#include <string_view>

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::simd {

std::string_view missing_for(SimdPath path);
bool passes_self_check(SimdPath path);
const RowKernels& row_kernels(SimdPath path);

}  // namespace leasehold::simd
