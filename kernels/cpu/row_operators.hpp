/// The operators of the CPU backend that work row by row and keep nothing between launches.
#pragma once

#include "kernels/cpu/cpu_resources.hpp"

namespace leasehold {

class RowOperators {
 public:
  /// The resources outlive it.
  explicit RowOperators(CpuResources& cpu) : cpu_(cpu) {}

  LaunchStatus embedding(const LaunchContext& context, const EmbeddingArgs& args);
  LaunchStatus rms_norm(const LaunchContext& context, const RmsNormArgs& args);
  LaunchStatus prepare_heads(const LaunchContext& context, const HeadsArgs& args);
  LaunchStatus swiglu(const LaunchContext& context, const SwiGluArgs& args);
  LaunchStatus expert_routing(const LaunchContext& context, const ExpertRoutingArgs& args);
  LaunchStatus weighted_sum(const LaunchContext& context, const WeightedSumArgs& args);

 private:
  void append(const LaunchPermit& permit, const LaunchContext& context, const HeadsArgs& args,
              std::size_t r) const;

  CpuResources& cpu_;
};

}  // namespace leasehold
