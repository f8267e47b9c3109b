/// The operators on a card that work row by row and own no memory.
///
/// Those that compute a matmul's input also store it in the form `next`, which the matmul reads.
#pragma once

#include "kernels/cuda/cuda_resources.hpp"

namespace leasehold::cuda {

class RowOperators {
 public:
  /// The resources outlive it.
  explicit RowOperators(CudaResources& cuda) : cuda_(cuda) {}

  LaunchStatus embedding(const LaunchContext& context, const EmbeddingArgs& args);
  LaunchStatus rms_norm(const LaunchContext& context, const RmsNormArgs& args, RowForm next);
  LaunchStatus prepare_heads(const LaunchContext& context, const HeadsArgs& args);
  LaunchStatus swiglu(const LaunchContext& context, const SwiGluArgs& args, RowForm next);
  LaunchStatus expert_routing(const LaunchContext& context, const ExpertRoutingArgs& args);
  LaunchStatus weighted_sum(const LaunchContext& context, const WeightedSumArgs& args);

 private:
  CudaResources& cuda_;
};

}  // namespace leasehold::cuda
