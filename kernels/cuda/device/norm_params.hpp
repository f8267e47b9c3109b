/// Parameters of the root mean square norm. C++20-clean.
#pragma once

#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/device/int8/int8_rows.hpp"
#include "kernels/cuda/device/tiles.hpp"

namespace leasehold::device {

inline constexpr std::uint32_t kMaxNormThreads = 1024;

struct RmsNormParams {
  KernelGate gate;
  const float* x;          ///< [n_rows, vectors_per_row, width]
  const float* weight;     ///< [width], or [vectors_per_row, width]
  const float* out_scale;  ///< [1], or null
  float* out;  ///< [n_rows, vectors_per_row, width]; may be x; null if fits_shared and not wanted
  /// Second outputs for the next matmul; none if `halves` or `q` is null.
  TileRows tiles;
  Int8Rows rounded;
  std::uint32_t width;
  std::uint32_t vectors_per_row;  ///< Above 1: only the first output is written.
  std::uint32_t weight_stride;    ///< From a vector's weight to the next: 0 or width.
  float epsilon;
  float scale;
  std::uint32_t is_centered;  ///< Not 0: subtracts the mean of x first.
  std::uint32_t accumulate;   ///< Not 0: adds to `out`, the only output.
  std::uint32_t fits_shared;  ///< Not 0: the launch has shared memory for a row of whole quads,
                              ///< at most four per thread.
};

}  // namespace leasehold::device
