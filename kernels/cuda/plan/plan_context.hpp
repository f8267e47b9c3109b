/// What is common to all plans of a step: where the device finds the step, and for how many rows
/// the launches are made. A launch made for more rows than the step has leaves the rest alone.
#pragma once

#include <cstdint>

#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/kernel_launch.hpp"

namespace leasehold::cuda {

inline constexpr std::uint32_t kWarpThreads = 32;

struct PlanContext {
  device::KernelGate gate;
  std::uint32_t n_rows = 0;  ///< The most that a step of this plan has.
  std::uint16_t layer = 0;
};

constexpr std::uint32_t blocks_for(std::uint32_t units, std::uint32_t per_block) {
  return (units + per_block - 1) / per_block;
}

}  // namespace leasehold::cuda
