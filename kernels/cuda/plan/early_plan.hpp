/// The size of int8 matmuls that start before the previous kernel has ended: columns, blocks and
/// shared memory. Pure.
#pragma once

#include <optional>

#include "kernels/cuda/device/int8/early_params.hpp"
#include "kernels/cuda/plan/matmul_plan.hpp"

namespace leasehold::cuda {

struct EarlyShape {
  std::uint32_t columns;
  std::uint32_t n_blocks;
  std::uint32_t shared_bytes;  ///< Per block.
  device::EarlyShared shared;
  device::EarlyRows rows;
};

/// The shape of the launch of a group, with or without its norm. Null: the card does not start
/// kernels early, there are experts or more than eight results, or x does not fit shared memory.
std::optional<EarlyShape> early_shape(MatmulGroup group, bool has_norm,
                                      const DeviceProperties& card);

}  // namespace leasehold::cuda
