/// Compares the int8 dot products of a SIMD path with those of the scalar path, on this machine.
#pragma once

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold {

/// True if the dot products of random rows have the same bits as on the scalar path, in every
/// quantised format. Takes some milliseconds.
bool matches_scalar_dots(const RowKernels& kernels);

}  // namespace leasehold
