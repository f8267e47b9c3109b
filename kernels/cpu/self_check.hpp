/// Compares the int8 dots of a SIMD path with the plain ones, on this machine.
#pragma once

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold {

/// True if random products of every format have the plain bits. Takes some milliseconds.
bool has_plain_products(const RowKernels& kernels);

}  // namespace leasehold
