/// Parameters of the kernel that rounds rows of floats to int8. C++20-clean.
#pragma once

#include "kernels/cuda/device/int8/int8_rows.hpp"
#include "kernels/cuda/device/matmul_params.hpp"

namespace leasehold::device {

/// Rounds x: row i of `rounded` is x[select[i], :].
struct RoundRowsParams {
  KernelGate gate;
  const float* x;               ///< [n_rows, n_in]
  const std::uint32_t* select;  ///< [n_results], or null: row i itself
  Int8Rows rounded;
  ResultCount count;
};

}  // namespace leasehold::device
