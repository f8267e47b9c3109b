/// Plans attention: partitions of 256 positions, then their merge; or all of it, with the heads
/// before it, in one launch.
///
/// Pure. The plan chooses which rows and heads share a block and how many rows share a pair of
/// launches, for speed only. The results always have the reference backend's bits.
#pragma once

#include <vector>

#include "kernels/cuda/device/kv_addressing.hpp"
#include "kernels/cuda/device/rope_params.hpp"
#include "kernels/cuda/plan/plan_context.hpp"
#include "kernels/cuda/plan/row_plan.hpp"

namespace leasehold::cuda {

/// Bytes of partial results per row, if the longest sequence of the step has `longest` positions.
std::uint64_t attention_scratch_bytes_per_row(const AttentionArgs& args, std::uint32_t longest);

struct AttentionPlanInput {
  device::BlockTables tables;
  float* scratch = nullptr;  ///< On the device; aligned to 16 bytes.
  std::uint64_t scratch_bytes = 0;
  /// The longest sequence, in positions, that a step of this plan may have.
  std::uint32_t longest = 0;
  /// Some sequence has several rows, which share the keys and values they read.
  bool has_multi_row = false;
  std::uint32_t n_runs = 0;                    ///< Runs of rows of one sequence, if has_multi_row.
  std::uint32_t n_sms = 0;                     ///< Decides how many heads share a block.
  std::uint32_t max_shared_bytes = 64 * 1024;  ///< Per block that requests it.
  PreparedRows prepared = {};    ///< A second output for the next matmul; pairs make tiles only.
  const float* sinks = nullptr;  ///< args.sinks on the device, or null.
  std::uint32_t* counters = nullptr;  ///< [n_counters], zero before and after one launch.
  std::uint32_t n_counters = 0;
};

/// Plans pairs of launches, each for as many rows as fit the scratch. args.block_tables are host
/// data and are not read.
std::vector<KernelLaunch> plan_attention(const PlanContext& context, const AttentionArgs& args,
                                         const AttentionPlanInput& input);

/// Whether plan_decode_attention may be called: the rows belong to different sequences of few
/// partitions, and heads are neither wide nor latent.
bool is_one_launch(const PlanContext& context, const AttentionArgs& args,
                   const AttentionPlanInput& input);

/// Plans the heads, their append and attention of all rows in one launch. `heads` are those of
/// plan_rope_kv_append; heads.q does not change.
KernelLaunch plan_decode_attention(const PlanContext& context,
                                   const device::RopeKvAppendParams& heads,
                                   const AttentionArgs& args, const AttentionPlanInput& input);

}  // namespace leasehold::cuda
