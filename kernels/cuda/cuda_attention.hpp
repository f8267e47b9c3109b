/// Attention on a card, in pairs of launches. Score launches reach tenant memory; merges do not.
#pragma once

#include "kernels/cuda/cuda_resources.hpp"

namespace leasehold::cuda {

class CudaAttention {
 public:
  /// The resources outlive it.
  static Result<CudaAttention> create(CudaResources& cuda);

  LaunchStatus run(const LaunchContext& context, const AttentionArgs& args);
  void clear() { cuda_.launcher().zero(partials_); }

 private:
  CudaAttention(CudaResources& cuda, DeviceBuffer partials)
      : cuda_(cuda), partials_(std::move(partials)) {}

  CudaResources& cuda_;
  DeviceBuffer partials_;
};

}  // namespace leasehold::cuda
