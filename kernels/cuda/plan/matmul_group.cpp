#include "kernels/cuda/plan/matmul_group.hpp"

#include "common/expects.hpp"
#include "kernels/cuda/plan/plan_context.hpp"

namespace leasehold::cuda {

bool is_experts(const MatmulOperands& operands) {
  return operands.experts.has_several();
}

std::uint32_t output_stride(const MatmulOperands& operands) {
  return operands.out_stride != 0 ? operands.out_stride : operands.n_out;
}

std::uint32_t results_together(const MatmulOperands& operands) {
  return is_experts(operands) ? blocks_for(operands.n_results, operands.n_experts)
                              : operands.n_results;
}

std::uint32_t row_tiles(MatmulGroup group, std::uint32_t rows_per_tile) {
  std::uint32_t tiles = 0;
  for (const MatmulOperands& one : group) tiles += blocks_for(one.n_out, rows_per_tile);
  return tiles;
}

std::uint32_t result_tiles(const MatmulOperands& operands, std::uint32_t columns) {
  return is_experts(operands) ? operands.n_experts : blocks_for(operands.n_results, columns);
}

void set_segments(std::span<device::MatmulSegment> segments, MatmulGroup group,
                  std::uint32_t rows_per_tile) {
  expects(group.size() <= segments.size(), "a launch has a segment for each matrix");
  for (std::size_t i = 0; i < group.size(); ++i)
    segments[i] = {.weights = group[i].weights,
                   .out = group[i].out,
                   .bias = group[i].bias,
                   .n_out = group[i].n_out,
                   .out_stride = output_stride(group[i]),
                   .first_tile = row_tiles(group.first(i), rows_per_tile)};
}

}  // namespace leasehold::cuda
