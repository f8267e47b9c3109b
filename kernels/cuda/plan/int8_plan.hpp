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

/// Whether the launch of the group can also compute the norm whose output is x
/// (MatmulScratch::norm): it starts early, and the rows fit its shared memory.
bool norms_rows(MatmulGroup group, const DeviceProperties& card);

/// Whether the launch of gate and up can also gate the products and round them in blocks of
/// `next_block` elements: there are at most eight rows, multiplied in one launch.
bool gates_products(MatmulGroup gate_and_up, std::uint32_t next_block,
                    const DeviceProperties& card);

/// The counters that such a launch needs.
constexpr std::uint32_t gate_counter_count(std::uint32_t n_out) {
  return (n_out + device::kGatedOutputs - 1) / device::kGatedOutputs;
}

/// split_bytes of these matmuls; 0 if their launch is not split.
std::uint64_t int8_split_bytes(MatmulGroup group, const DeviceProperties& card);

/// Plans a launch that rounds the selected rows of x. With experts it rounds rows of x, not items.
KernelLaunch plan_round_rows(const MatmulOperands& operands, const device::Int8Rows& rounded);

}  // namespace leasehold::cuda
