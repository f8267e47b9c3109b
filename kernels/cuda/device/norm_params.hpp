/// Root mean square norm, of whole rows and of heads. C++20-clean.
#pragma once

#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/device/tiles.hpp"

namespace leasehold::device {

struct RmsNormParams {
  KernelGate gate;
  const float* x;       ///< [n_rows, n_vectors, width]
  const float* weight;  ///< [width]
  float* out;           ///< [n_rows, n_vectors, width]; may be x
  /// The output once more, for the next matmul; none where `halves` is null. Rows only.
  TileRows tiles;
  std::uint32_t width;
  std::uint32_t n_vectors;
  float epsilon;
  std::uint32_t fits_shared;  ///< Not 0: the launch has room for a row in shared memory.
};

}  // namespace leasehold::device
