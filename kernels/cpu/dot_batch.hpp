/// The inner loop of every CPU matmul in f32 arithmetic: some weight rows times many batch rows.
#pragma once

#include <algorithm>

#include "kernels/cpu/dot_weights.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "kernels/cpu/tiling.hpp"

namespace leasehold {

/// Calls `store(i, first, n, dots)` for each i of the batch and each group of outputs from `first`
/// on, where dots[o] is weights[first + o] · row_of(i) for o < n. The tile's inputs are
/// overwritten. Only the dots of the first inputs request the tile's next rows.
template <class RowOf, class Store>
void dot_batch(const RowKernels& kernels, DotTile& tile, Span32 batch, RowOf&& row_of,
               Store&& store) {
  DotProducts dots;
  for (std::uint32_t first = batch.begin; first < batch.end; first += kDotInputs) {
    tile.n_inputs = std::min(kDotInputs, batch.end - first);
    for (std::uint32_t i = 0; i < tile.n_inputs; ++i) {
      const bool is_known = first != batch.begin && i < kDotInputGroup;
      tile.x[i] = is_known ? tile.next_x[i] : row_of(first + i);
    }
    for (std::uint32_t i = 0; i < kDotInputGroup; ++i)
      tile.next_x[i] =
          first + kDotInputs + i < batch.end ? row_of(first + kDotInputs + i) : nullptr;
    kernels.dot_tile(tile, dots);
    tile.next_bytes = 0;
    for (std::uint32_t i = 0; i < tile.n_inputs; ++i)
      for (std::uint32_t o = 0; o < tile.n_outputs; o += kDotOutputGroup)
        store(first + i, o, std::min(kDotOutputGroup, tile.n_outputs - o),
              dots[o / kDotOutputGroup][i]);
  }
}

}  // namespace leasehold
