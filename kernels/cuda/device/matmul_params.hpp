/// What the matmul kernels are told: out[i, :] (+)= W · x[row of i, :] (+ bias). Plain data, the
/// same for the host's compiler and nvcc. C++20-clean.
///
/// The *results* i are the step's rows, or its rows that get logits, or its items: a row's k-th
/// expert each, item = row · n_used + k. The numbers on the device count (DeviceStep); a launch may
/// have been made for more.
#pragma once

#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/device/tiles.hpp"

namespace leasehold::device {

/// How many results a step has.
struct ResultCount {
  std::uint32_t is_logit_rows;  ///< Counts the step's logit rows instead of all.
  std::uint32_t per_row;        ///< n_used of experts, else 1.
};

/// x as floats into tiles: row i of the tiles is x[select[i], :].
struct PrepareTilesParams {
  KernelGate gate;
  const float* x;               ///< [n_rows, n_in]
  const std::uint32_t* select;  ///< [n_results], or null: row i itself
  TileRows tiles;
  ResultCount count;
};

/// Which matrix of several a result goes through.
struct ExpertAssignment {
  const std::uint32_t* chosen;  ///< [n_results] the expert of each; null: there is one matrix.
  std::uint32_t items_per_x;    ///< Result i takes row i / items_per_x.
};

struct MatmulParams {
  KernelGate gate;
  const std::byte* weights;  ///< [n_out] rows of row_bytes, of each expert
  std::uint64_t row_bytes;
  TileRows x;
  const std::uint32_t* select;  ///< [n_results] rows of x, or null: row i itself
  ExpertAssignment experts;
  float* out;               ///< [n_results, n_out]
  const float* bias;        ///< [n_out], or null
  float* partials;          ///< [n_slices, columns of a block, n_out]; of split launches alone
  std::uint32_t* counters;  ///< [row tiles] zero between launches; of split launches alone
  std::uint32_t n_out;
  std::uint32_t accumulate;  ///< Not 0: add to out.
  std::uint32_t first;       ///< The launch's first result.
  ResultCount count;
};

/// Weights that are floats: no tiles, plain fma.
struct FloatMatmulParams {
  KernelGate gate;
  const float* weights;         ///< [n_out, n_in] of each expert
  const float* x;               ///< [n_rows, n_in]
  const std::uint32_t* select;  ///< [n_results], or null
  ExpertAssignment experts;
  float* out;         ///< [n_results, n_out]
  const float* bias;  ///< [n_out], or null
  std::uint32_t n_out;
  std::uint32_t n_in;
  std::uint32_t accumulate;
  std::uint32_t first;
  ResultCount count;
};

/// Does wgmma add as mma.sync does? A block multiplies [64 × 16·steps] by [16·steps × 128] both
/// ways.
struct MmaProbeParams {
  KernelGate gate;
  const std::uint16_t* a;  ///< [n_products][64][16 · steps] halves
  const std::uint16_t* b;  ///< [n_products][128][16 · steps] halves, a column after the other
  std::uint32_t* results;  ///< [2], zero before: sums compared; sums whose bits differ
  std::uint32_t steps;     ///< At most kMaxProbeSteps.
};
inline constexpr std::uint32_t kProbeRows = 64;
inline constexpr std::uint32_t kProbeColumns = 128;
inline constexpr std::uint32_t kMaxProbeSteps = 32;

}  // namespace leasehold::device
