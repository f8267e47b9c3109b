/// A weight row widened to float on AVX2.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/tensor_type.hpp"

namespace leasehold::avx2 {

/// The same values as dequantize_row (kernels/quant).
[[gnu::target("avx2,fma,f16c")]] void dequantize_row(TensorType type, const std::byte* source,
                                                     float* out, std::size_t n);

}  // namespace leasehold::avx2
