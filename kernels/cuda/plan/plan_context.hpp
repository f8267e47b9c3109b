/// Common to all plans of a step: the device addresses of the step, and the number of rows that
/// launches are planned for. A launch skips rows beyond the step's own count.
#pragma once

#include <cstdint>

#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/kernel_launch.hpp"

namespace leasehold::cuda {

inline constexpr std::uint32_t kWarpThreads = 32;

struct PlanContext {
  device::KernelGate gate;
  std::uint32_t n_rows = 0;  ///< The maximum for a step of this plan.
  std::uint16_t layer = 0;
};

constexpr std::uint32_t blocks_for(std::uint32_t units, std::uint32_t per_block) {
  return (units + per_block - 1) / per_block;
}

}  // namespace leasehold::cuda
