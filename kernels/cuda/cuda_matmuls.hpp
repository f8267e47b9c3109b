/// Matmuls on a card. Consecutive matmuls with the same type and layout share a launch.
#pragma once

#include "kernels/cuda/cuda_resources.hpp"

namespace leasehold::cuda {

class CudaMatmuls {
 public:
  /// The resources outlive it.
  explicit CudaMatmuls(CudaResources& cuda) : cuda_(cuda) {}

  /// The form of the prepared rows for the first matmul that reads any.
  RowForm form_of(const ProjectionArgs& args) const;
  /// Whether a matmul reads floats, or prepares rows from them, though rows of form `prepared`
  /// exist.
  bool read_floats(const ProjectionArgs& args, RowForm prepared) const;
  LaunchStatus run(const LaunchContext& context, std::span<const MatmulArgs> matmuls);
  /// Whether run_gated may be called.
  bool gates_products(const LaunchContext& context, const FeedForwardArgs& args) const;
  /// Runs gate and up in one launch, which also gates the products and rounds them for `down`.
  LaunchStatus run_gated(const LaunchContext& context, const FeedForwardArgs& args);
  LaunchStatus expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args);

 private:
  /// A matmul with its leased operands, which only a permit opens.
  struct PlannedMatmul {
    MatmulOperands operands;
    Leased<const std::byte> weight;
    Leased<const float> bias;
    RowForm form;
  };
  PlannedMatmul plan(const LaunchContext& context, const MatmulArgs& args) const;
  MatmulOperands operands_of(const LaunchContext& context, const WeightMatrix& weight) const;
  LaunchStatus run_group(const LaunchContext& context, LaunchSite site,
                         std::span<const PlannedMatmul> group,
                         const device::GatedProducts& gated = {});

  CudaResources& cuda_;
};

}  // namespace leasehold::cuda
