/// Plans the products of adapters.
///
/// Pointers in the arguments are device addresses. Pure; the results have the reference backend's
/// bits. A plan does not depend on the adapters, so a graph serves any of them.
#pragma once

#include <vector>

#include "kernels/cuda/device/low_rank_params.hpp"
#include "kernels/cuda/plan/plan_context.hpp"

namespace leasehold::cuda {

/// Both launches, in this order. `shares_rows`: neighbouring rows may have one adapter.
std::vector<KernelLaunch> plan_low_rank(const PlanContext& context, const LowRankArgs& args,
                                        device::DeviceAdapters adapters, bool shares_rows);

}  // namespace leasehold::cuda
