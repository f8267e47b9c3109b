/// The names of the matmul kernels by weight type. They live as long as the program, so launches
/// may keep them.
#pragma once

#include <cstdint>

#include "kernels/quant/tensor_type.hpp"

namespace leasehold::cuda {

/// `tiles` is 1, 2, 4 or 8; `columns` is 64 or 128. `type` is not F32.
const char* few_rows_kernel(TensorType type, std::uint32_t tiles);
const char* many_rows_kernel(TensorType type, std::uint32_t columns);
/// For row groups. `columns` is 1, 2, 8, 32 or 64; `type` has row groups.
const char* int8_kernel(TensorType type, std::uint32_t columns);
/// Likewise with wgmma. `columns` is 32, 64 or 128; has_int8_many(type).
const char* int8_many_kernel(TensorType type, std::uint32_t columns);
/// Likewise, for 1, 2 or 8 columns: the kernels that start before the previous kernel has ended.
const char* early_kernel(TensorType type, std::uint32_t columns);

}  // namespace leasehold::cuda
