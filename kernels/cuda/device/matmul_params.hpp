/// Parameters of the matmul kernels: out[i, :] (+)= W · x[row of i, :] (+ bias). Plain data, the
/// same for the host compiler and nvcc. C++20-clean.
///
/// The *results* i are the step's rows, its rows with logits, or its items: an item is the k-th
/// expert of a row, item = row · n_used + k. The numbers on the device (DeviceStep) are
/// authoritative; a launch may be planned for more.
#pragma once

#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/device/tiles.hpp"

namespace leasehold::device {

/// The number of results of a step.
struct ResultCount {
  std::uint32_t is_logit_rows;  ///< Not 0: counts the step's logit rows instead of all rows.
  std::uint32_t per_row;        ///< n_used with experts, otherwise 1.
};

/// Stores x as tiles: row i of the tiles is x[select[i], :].
struct PrepareTilesParams {
  KernelGate gate;
  const float* x;               ///< [n_rows, n_in]
  const std::uint32_t* select;  ///< [n_results], or null: row i itself
  TileRows tiles;
  ResultCount count;
};

/// The expert of each result.
struct ExpertAssignment {
  const std::uint32_t* chosen;  ///< [n_results] experts, or null
  std::uint32_t items_per_x;    ///< Result i reads row i / items_per_x.
  /// Not 0: result i uses matrix i mod n_in_turn, and `chosen` is null.
  std::uint32_t n_in_turn = 0;

  /// False: there is one matrix.
  LEASEHOLD_HD constexpr bool has_several() const { return chosen != nullptr || n_in_turn != 0; }
};

/// One matrix of a launch, and where its products go. Its row tiles are consecutive blocks.
struct MatmulSegment {
  const std::byte* weights;  ///< [n_out] rows, or their groups, per expert
  float* out;                ///< [n_results, n_out], out_stride apart
  const float* bias;         ///< [n_out] per expert, or null
  std::uint32_t n_out;
  std::uint32_t out_stride;  ///< In elements.
  std::uint32_t first_tile;  ///< The blockIdx.x of its first row tile.
};
inline constexpr std::uint32_t kMaxSegments = 3;

/// Several matrices of one type and width may share a launch, because they multiply the same rows.
struct MatmulParams {
  KernelGate gate;
  MatmulSegment segments[kMaxSegments];  ///< By first_tile, ascending from 0.
  std::uint64_t row_bytes;
  TileRows x;
  const std::uint32_t* select;  ///< [n_results] rows of x, or null: row i itself
  ExpertAssignment experts;     ///< Used with one segment only.
  float* partials;              ///< [n_slices, columns, rows of all row tiles]; split launches only
  std::uint32_t* counters;      ///< [row tiles], zero between launches; split launches only
  std::uint32_t n_segments;
  std::uint32_t accumulate;  ///< Not 0: adds to out.
  ResultCount count;
};

/// Parameters of matmuls of floats: no tiles, plain fma.
struct FloatMatmulParams {
  KernelGate gate;
  const std::byte* weights;  ///< [n_out] rows of row_bytes per expert
  std::uint64_t row_bytes;
  const float* x;               ///< [n_rows, n_in]
  const std::uint32_t* select;  ///< [n_results], or null
  ExpertAssignment experts;
  float* out;         ///< [n_results, n_out], out_stride apart
  const float* bias;  ///< [n_out] per expert, or null
  std::uint32_t n_out;
  std::uint32_t out_stride;
  std::uint32_t n_in;
  std::uint32_t accumulate;
  TensorType type;
  BlockShape shape;  ///< The type's block shape.
  ResultCount count;
};

/// Compares wgmma with mma.sync: a block multiplies [64 × 16·steps] by [16·steps × 128] with both.
struct MmaProbeParams {
  KernelGate gate;
  const std::uint16_t* a;  ///< [n_products][64][16 · steps] halves
  const std::uint16_t* b;  ///< [n_products][128][16 · steps] halves, column by column
  std::uint32_t* results;  ///< [2], zero before: sums compared; sums with different bits
  std::uint32_t steps;     ///< At most kMaxProbeSteps.
};
inline constexpr std::uint32_t kProbeRows = 64;
inline constexpr std::uint32_t kProbeColumns = 128;
inline constexpr std::uint32_t kMaxProbeSteps = 32;

}  // namespace leasehold::device
