/// Runs plans as units. Only the operator files of CudaBackend include this header.
#pragma once

#include "kernels/cuda/cuda_backend.hpp"
#include "kernels/launch_rules.hpp"

namespace leasehold::cuda {

/// Every unit plans again under its own permit, because an address is valid only as long as its
/// permit.
template <class Plan>
LaunchStatus CudaBackend::launch_all(const LaunchContext& context, UnitLabel even, UnitLabel odd,
                                     Plan&& plan) {
  LaunchStatus status{context.gates->all()};
  if (mode_ == Mode::Replay || context.rows.empty()) return status;
  std::size_t count = 1;
  for (std::size_t i = 0; i < count && !status.none_live(); ++i) {
    const UnitLabel label = i % 2 == 0 ? even : odd;
    const auto run = [&](const LaunchPermit& permit) {
      std::vector<KernelLaunch> launches = plan(permit);
      count = launches.size();
      if (i >= count) return CUDA_SUCCESS;
      if (mode_ == Mode::Launch) return launcher_->enqueue(launches[i]);
      record(launches[i], context.layer);
      return CUDA_SUCCESS;
    };
    status.live &=
        mode_ == Mode::Record
            ? launcher_->plan_unit(*context.gates, label, run).live
            : launcher_->unit(*context.gates, label, leasehold::name(label.site), run).live;
  }
  is_fully_recorded_ = is_fully_recorded_ && !status.none_live();
  return status;
}

template <class Plan>
LaunchStatus CudaBackend::launch_one(const LaunchContext& context, UnitLabel label, Plan&& plan) {
  return launch_all(context, label, label, [&](const LaunchPermit& permit) {
    return std::vector<KernelLaunch>{plan(permit)};
  });
}

}  // namespace leasehold::cuda
