/// Matmuls of the CPU backend in f32 arithmetic: weight rows are multiplied as floats.
///
/// Weights are dequantised a few rows at a time; no fp32 copy of a matrix exists.
#pragma once

#include <vector>

#include "kernels/cpu/cpu_resources.hpp"
#include "kernels/cpu/expert_tiles.hpp"

namespace leasehold {

class FloatMatmuls {
 public:
  /// The resources outlive it.
  explicit FloatMatmuls(CpuResources& cpu);

  LaunchStatus matmul(const LaunchContext& context, const MatmulArgs& args);
  LaunchStatus expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args,
                             ExpertTiles& experts);
  void clear();

 private:
  /// A tile of a matmul that a thread multiplies.
  struct RunningTile {
    const WeightMatrix& weight;
    std::uint32_t first_row;  ///< The matrix row of the matmul's first output.
    const MatmulTiles& tiles;
    std::uint32_t index;
    std::uint32_t thread;
  };
  MatmulTiles plan(const WeightMatrix& weight, std::uint32_t n_out, std::uint32_t n_batch) const;
  template <class RowOf, class Store>
  void multiply(const LaunchPermit& permit, const RunningTile& tile, RowOf&& row_of, Store&& store);
  DotTile open_rows(const LaunchPermit& permit, const WeightMatrix& weight, Span32 rows,
                    std::uint32_t next, std::uint32_t thread);
  std::uint32_t output_after(const RunningTile& tile) const;

  CpuResources& cpu_;
  std::size_t stride_;
  std::vector<float> widened_rows_;  // [threads, kDotOutputs, stride_]
};

}  // namespace leasehold
