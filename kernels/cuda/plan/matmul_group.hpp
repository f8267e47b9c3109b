/// The parts of a launch that multiplies several matrices by the same x: the row tiles of the
/// matrices, one after the other in x, and the results in y. Plans of halves and of int8 use these
/// functions.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cuda/plan/matmul_plan.hpp"

namespace leasehold::cuda {

bool is_experts(const MatmulOperands& operands);

/// The elements from one result to the next.
std::uint32_t output_stride(const MatmulOperands& operands);

/// The approximate number of results per matrix.
std::uint32_t results_together(const MatmulOperands& operands);

/// The number of blocks in x of a launch. Every matrix begins with a new tile.
std::uint32_t row_tiles(MatmulGroup group, std::uint32_t rows_per_tile);

/// The number of blocks in y of a launch.
std::uint32_t result_tiles(const MatmulOperands& operands, std::uint32_t columns);

/// Fills the first segments, one for each matrix. Precondition: there is room for them.
void set_segments(std::span<device::MatmulSegment> segments, MatmulGroup group,
                  std::uint32_t rows_per_tile);

}  // namespace leasehold::cuda
