/// Plans the operators that work row by row: embedding, norms, rotation, feed-forward, experts.
///
/// Pointers in the arguments are device addresses. A leased address, which only its permit opens,
/// is a separate argument. Pure; the results have the reference backend's bits.
#pragma once

#include "kernels/cuda/device/int8/int8_rows.hpp"
#include "kernels/cuda/device/rope_params.hpp"
#include "kernels/cuda/device/tiles.hpp"
#include "kernels/cuda/plan/plan_context.hpp"
#include "kernels/numerics/expert_routing.hpp"

namespace leasehold::cuda {

/// table: [n_vocab, n_embd] in the type and layout of args.table, on the device.
KernelLaunch plan_embedding(const PlanContext& context, const EmbeddingArgs& args,
                            const std::byte* table);

/// The form of an output that the next matmul reads: tiles, rounded rows, or neither.
struct PreparedRows {
  device::TileRows tiles = {};
  device::Int8Rows rounded = {};
};

/// The leased vectors of a norm, on the device.
struct NormVectors {
  const float* weight = nullptr;
  const float* out_scale = nullptr;  ///< Null: none.
};

/// Plans the norm. The kernel also stores the prepared form of the output. Without `has_floats`,
/// args.out is undefined.
KernelLaunch plan_rms_norm(const PlanContext& context, const RmsNormArgs& args,
                           const NormVectors& vectors, const PreparedRows& prepared = {},
                           bool has_floats = true);

/// Head norms, rotation and append of one layer, in one launch.
KernelLaunch plan_rope_kv_append(const device::RopeKvAppendParams& params, std::uint32_t n_rows);

/// Device memory with which several blocks share a row, until the next launch.
struct RowParts {
  std::uint32_t* largest = nullptr;   ///< [max_blocks]
  std::uint32_t* counters = nullptr;  ///< [max_blocks], zero before and after.
  std::uint32_t max_blocks = 0;       ///< If fewer than two per row, a row has one block.
};

/// Plans SwiGLU. The kernel also stores the prepared form of each row; tiles need `parts`.
KernelLaunch plan_swiglu(const PlanContext& context, const SwiGluArgs& args,
                         const PreparedRows& prepared = {}, RowParts parts = {});

/// Plans the caps of `n_rows` rows of x.
KernelLaunch plan_softcap(const PlanContext& context, const SoftcapArgs& args,
                          std::uint32_t n_rows);

/// `vectors` are those of `args`.
KernelLaunch plan_expert_routing(const PlanContext& context, const ExpertRoutingArgs& args,
                                 const RoutingVectors& vectors = {});
KernelLaunch plan_weighted_sum(const PlanContext& context, const WeightedSumArgs& args);

}  // namespace leasehold::cuda
