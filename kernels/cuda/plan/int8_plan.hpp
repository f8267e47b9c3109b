/// Plans matmuls of row groups: int8 arithmetic, with the bits of the CPU
/// (numerics/int8_order.hpp). Pure; pointers are device addresses.
#pragma once

#include "kernels/cuda/device/int8/int8_rows.hpp"
#include "kernels/cuda/plan/matmul_plan.hpp"

namespace leasehold::cuda {

/// Plans the rounding of x, unless x is rounded, and the matmuls of a group that joined_matmuls()
/// allows.
std::vector<KernelLaunch> plan_int8_matmul(MatmulGroup group, const MatmulScratch& scratch,
                                           const DeviceProperties& card);

/// Plans a launch that rounds the selected rows of x. With experts it rounds rows of x, not items.
KernelLaunch plan_round_rows(const MatmulOperands& operands, const device::Int8Rows& rounded);

}  // namespace leasehold::cuda
