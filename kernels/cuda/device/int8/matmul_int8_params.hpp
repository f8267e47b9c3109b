/// Parameters of the matmul kernels for row groups. Plain data, the same for the host compiler and
/// nvcc. C++20-clean.
#pragma once

#include "kernels/cuda/device/int8/int8_rows.hpp"
#include "kernels/cuda/device/matmul_params.hpp"

namespace leasehold::device {

/// Outputs that one block gates and rounds: whole blocks of every format, and whole groups.
inline constexpr std::uint32_t kGatedOutputs = 512;
/// The most rows of a launch that gates its products.
inline constexpr std::uint32_t kMaxGatedRows = 8;

/// What happens to the products of gate and up, the two segments of a launch: the activation
/// replaces those of gate, which are then rounded for the next matmul. The last block of both
/// segments to store some of 512 neighbouring outputs does this for all 512.
struct GatedProducts {
  std::uint32_t* counters;  ///< [n_out / 512, rounded up], zero before and after; null: nothing.
  Int8Rows rounded;
  Activation activation;
};

/// The same as MatmulParams for groups of rows and rounded rows of x.
struct Int8MatmulParams {
  KernelGate gate;
  MatmulSegment
      segments[kMaxSegments];  ///< By first_tile, ascending from 0; a tile is one group or four.
  std::uint64_t group_bytes;
  Int8Rows x;
  const std::uint32_t* select;  ///< [n_results] rows of x, or null: row i itself
  ExpertAssignment experts;     ///< Used with one segment only; its matrices are whole groups.
  float* partials;              ///< [kInt8Chunks, columns, rows] of all blocks; split launches only
  std::uint32_t* counters;      ///< [blocks in x and y], zero between launches; split launches only
  std::uint32_t n_segments;
  std::uint32_t accumulate;  ///< Not 0: adds to out.
  ResultCount count;
  GatedProducts gated;
};

}  // namespace leasehold::device
