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
  /// Whether run() and run_gated() can compute the norm whose output is the matmuls' x, and which
  /// nothing else reads.
  bool norms_rows(const LaunchContext& context, const RmsNormArgs& norm,
                  std::span<const MatmulArgs> matmuls) const;
  /// `norm`: computed with the matmuls, if norms_rows(); null: x holds its output.
  LaunchStatus run(const LaunchContext& context, std::span<const MatmulArgs> matmuls,
                   const RmsNormArgs* norm);
  /// Whether run_gated may be called.
  bool gates_products(const LaunchContext& context, const FeedForwardArgs& args) const;
  /// Runs gate and up in one launch, which also gates the products and rounds them for `down`;
  /// `norm` as for run().
  LaunchStatus run_gated(const LaunchContext& context, const FeedForwardArgs& args,
                         const RmsNormArgs* norm);
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
  /// What a launch computes beside the matmuls.
  struct Fused {
    device::GatedProducts gated = {};
    const RmsNormArgs* norm = nullptr;
  };
  LaunchStatus run_group(const LaunchContext& context, LaunchSite site,
                         std::span<const PlannedMatmul> group, const Fused& fused);

  CudaResources& cuda_;
};

}  // namespace leasehold::cuda
