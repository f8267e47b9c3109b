/// Matmuls of the CPU backend in int8 arithmetic: groups of weight rows times rounded rows.
#pragma once

#include <atomic>
#include <vector>

#include "kernels/cpu/expert_tiles.hpp"
#include "kernels/cpu/group_tiles.hpp"
#include "kernels/cpu/row_rounding.hpp"

namespace leasehold {

class Int8Matmuls {
 public:
  /// The resources outlive it.
  explicit Int8Matmuls(CpuResources& cpu);

  /// True if the matmuls round x alike, so that they can share the rounded rows and a launch.
  static bool can_project(const ProjectionArgs& args);
  /// Runs all matmuls in one launch, under the first one's site.
  LaunchStatus project(const LaunchContext& context, const ProjectionArgs& args);
  /// True if gate and up have the same type and the smallest tile of both fits a unit.
  bool can_fuse(const LaunchContext& context, const FeedForwardArgs& args) const;
  /// gate = silu(W_gate · x) * (W_up · x)
  LaunchStatus gate_and_up(const LaunchContext& context, const FeedForwardArgs& args);
  LaunchStatus expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args,
                             ExpertTiles& experts);
  void clear() { rounding_.clear(); }

 private:
  const Int8Units& units(std::uint32_t n_batch) const;
  /// A unit multiplies a tile of each of `matrices` matrices of the same shape.
  GroupTiles plan(const WeightMatrix& weight, std::uint32_t n_groups, std::uint32_t n_batch,
                  std::uint32_t matrices = 1) const;
  void multiply_groups(const LaunchPermit& permit, const WeightMatrix& weight, Span32 groups,
                       std::span<const RoundedRow> x, GroupDots* dots) const;
  void store(const MatmulArgs& args, const LaunchPermit& permit, std::uint32_t group, Span32 batch,
             const GroupDots& dots) const;
  void multiply(const LaunchPermit& permit, const MatmulArgs& args, GroupSpan groups, Span32 batch,
                InputRows rows) const;
  void multiply_gated(const LaunchPermit& permit, const FeedForwardArgs& args, GroupSpan groups,
                      Span32 batch, InputRows rows) const;
  void gate_block(const FeedForwardArgs& args, GroupSpan groups, Span32 batch) const;

  CpuResources& cpu_;
  RowRounding rounding_;
  /// Per tile of the running feed-forward: its halves (gate and up) that no unit has computed yet.
  std::vector<std::atomic<std::uint32_t>> products_left_;
};

}  // namespace leasehold
