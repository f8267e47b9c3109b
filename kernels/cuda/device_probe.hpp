/// Queries and probes of the card before the first step.
#pragma once

#include <string>

#include "kernels/cuda/launcher.hpp"
#include "kernels/cuda/plan/matmul_plan.hpp"

namespace leasehold::cuda {

struct ProbedDevice {
  DeviceProperties properties;
  std::string name;  ///< For example "cuda-sm90".
};

/// Launches a kernel if the card may have wgmma. Errors: the driver's.
Result<ProbedDevice> probe_device(const Context& context, Launcher& launcher,
                                  const device::KernelGate& gate);

}  // namespace leasehold::cuda
