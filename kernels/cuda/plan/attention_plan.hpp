/// Launches of attention: partitions of 256 positions, then their merge.
///
/// Pure. Which rows and heads share a block, and how many rows go into one pair of launches, is
/// chosen here for speed and decides nothing about the results, which have the reference's bits.
#pragma once

#include <vector>

#include "kernels/cuda/device/kv_addressing.hpp"
#include "kernels/cuda/device/tiles.hpp"
#include "kernels/cuda/plan/plan_context.hpp"

namespace leasehold::cuda {

/// Bytes of partial results of one row of a step whose longest sequence has `longest` positions.
std::uint64_t attention_scratch_bytes_per_row(const AttentionArgs& args, std::uint32_t longest);

struct AttentionPlanInput {
  device::BlockTables tables;
  float* scratch = nullptr;  ///< On the device; aligned to 16 bytes.
  std::uint64_t scratch_bytes = 0;
  /// Positions of the longest sequence that a step of this plan may have.
  std::uint32_t longest = 0;
  /// Some sequence has several rows, which then share what they read.
  bool has_multi_row = false;
  device::TileRows tiles = {};  ///< The output once more, for the next matmul; none when empty.
};

/// Pairs of launches, each pair for as many rows as the scratch has room for. args.block_tables are
/// the host's and not read.
std::vector<KernelLaunch> plan_attention(const PlanContext& context, const AttentionArgs& args,
                                         const AttentionPlanInput& input);

}  // namespace leasehold::cuda
