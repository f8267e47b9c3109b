/// Attention on a card: heads, then pairs of launches; or all of it in one, if each row belongs to
/// another sequence. Merges do not reach tenant memory, the other launches do.
#pragma once

#include "kernels/cuda/cuda_resources.hpp"
#include "kernels/cuda/plan/attention_plan.hpp"

namespace leasehold::cuda {

class CudaAttention {
 public:
  /// The resources outlive it.
  static Result<CudaAttention> create(CudaResources& cuda);

  LaunchStatus prepare_heads(const LaunchContext& context, const HeadsArgs& args);
  LaunchStatus run(const LaunchContext& context, const AttentionArgs& args);
  LaunchStatus prepare_and_run(const LaunchContext& context, const HeadsArgs& heads,
                               const AttentionArgs& args);
  void clear() { cuda_.launcher().zero(partials_); }

 private:
  CudaAttention(CudaResources& cuda, DeviceBuffer partials)
      : cuda_(cuda), partials_(std::move(partials)) {}
  device::RopeKvAppendParams heads_params(const HeadsArgs& args, const LaunchPermit& permit) const;
  AttentionPlanInput plan_input(const AttentionArgs& args) const;
  PreparedRows prepare_output(const AttentionArgs& args, RowForm next);

  CudaResources& cuda_;
  DeviceBuffer partials_;
};

}  // namespace leasehold::cuda
