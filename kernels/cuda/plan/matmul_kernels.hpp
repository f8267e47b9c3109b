/// The names of the matmul kernels in the image, by type. Literals, for launches to keep.
#pragma once

#include <cstdint>

#include "kernels/quant/tensor_type.hpp"

namespace leasehold::cuda {

/// `tiles` is 1, 2, 4 or 8; `columns` 64 or 128. Neither is asked for F32.
const char* few_rows_kernel(TensorType type, std::uint32_t tiles);
const char* many_rows_kernel(TensorType type, std::uint32_t columns);

}  // namespace leasehold::cuda
