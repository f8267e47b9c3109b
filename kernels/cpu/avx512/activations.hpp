/// Operations on rows of activations, on AVX-512. RowKernels documents each function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/numerics/int8_order.hpp"
#include "kernels/op_args.hpp"

namespace leasehold::avx512 {

void swiglu(Activation activation, float* gate, const float* up, std::size_t n);

void round_row(const float* x, std::size_t n, std::uint32_t block, const RoundedRowBuffer& out);

}  // namespace leasehold::avx512
