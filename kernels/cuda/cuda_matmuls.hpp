/// Matmuls on a card. Neighbours of one type and layout share a launch.
#pragma once

#include "kernels/cuda/row_operators.hpp"

namespace leasehold::cuda {

class CudaMatmuls {
 public:
  /// The resources outlive it.
  explicit CudaMatmuls(CudaResources& cuda) : cuda_(cuda) {}

  /// Runs the norm or SwiGLU with `rows`, in the form that the matmuls read, then the matmuls.
  LaunchStatus project(const LaunchContext& context, const ProjectionArgs& args,
                       RowOperators& rows);
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
  LaunchStatus run(const LaunchContext& context, LaunchSite site,
                   std::span<const PlannedMatmul> group);

  CudaResources& cuda_;
};

}  // namespace leasehold::cuda
