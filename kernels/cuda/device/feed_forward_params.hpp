/// Parameters of the feed-forward operators other than matmuls. C++20-clean.
#pragma once

#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/device/int8/int8_rows.hpp"
#include "kernels/cuda/device/tiles.hpp"

namespace leasehold::device {

struct SwiGluParams {
  KernelGate gate;
  float* gates;     ///< [n_rows, width]
  const float* up;  ///< [n_rows, width], up_stride elements from row to row
  /// The same result as `gates` in the formats of the next matmul. Not written if `tiles.halves` or
  /// `rounded.q` is null.
  TileRows tiles;
  Int8Rows rounded;
  /// Used if tiles are wanted and several thread blocks compute one row: the largest magnitude (as
  /// bits) that each block found, and the number of blocks that have finished, which is zero
  /// between launches.
  std::uint32_t* part_largest;  ///< [n_rows, blocks per row]
  std::uint32_t* counters;      ///< [n_rows]
  std::uint32_t width;
  std::uint64_t up_stride;
  Activation activation;
};

struct SoftcapParams {
  KernelGate gate;
  float* x;  ///< [rows, width]
  std::uint32_t width;
  std::uint32_t is_logit_rows;  ///< Not 0: x has the step's rows with logits, otherwise all rows.
  float cap;
};

struct ExpertRoutingParams {
  KernelGate gate;
  const float* scores;         ///< [n_rows, n_experts]
  const float* bias;           ///< [n_experts], or null
  const float* expert_scales;  ///< [n_experts], or null
  std::uint32_t* chosen;       ///< [n_rows, n_used]
  float* weights;              ///< [n_rows, n_used]
  std::uint32_t n_experts;
  std::uint32_t n_used;
  std::uint32_t normalize_expert_weights;
  ExpertGating gating;
  std::uint32_t n_groups;  ///< 1: there are none; at most kMaxExpertGroups.
  std::uint32_t n_groups_used;
  float scale;
};

struct WeightedSumParams {
  KernelGate gate;
  const float* x;        ///< [n_rows, n_terms, width]
  const float* weights;  ///< [n_rows, n_terms]
  float* out;            ///< [n_rows, width]
  std::uint32_t n_terms;
  std::uint32_t width;
  std::uint32_t applies_sigmoid;
  std::uint32_t accumulate;  ///< 0: overwrites `out`.
};

}  // namespace leasehold::device
