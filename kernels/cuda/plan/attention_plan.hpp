/// Plans attention: partitions of 256 positions, then their merge.
///
/// Pure. The plan chooses which rows and heads share a block and how many rows share a pair of
/// launches, for speed only. The results always have the reference backend's bits.
#pragma once

#include <vector>

#include "kernels/cuda/device/kv_addressing.hpp"
#include "kernels/cuda/device/tiles.hpp"
#include "kernels/cuda/plan/plan_context.hpp"

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
  /// Blocks that the card runs at once. If a block for each head stays within this number, each
  /// block gets more threads.
  std::uint32_t blocks_at_once = 0;
  device::TileRows tiles = {};   ///< A second output for the next matmul; empty means none.
  const float* sinks = nullptr;  ///< args.sinks on the device, or null.
};

/// Plans pairs of launches, each for as many rows as fit the scratch. args.block_tables are host
/// data and are not read.
std::vector<KernelLaunch> plan_attention(const PlanContext& context, const AttentionArgs& args,
                                         const AttentionPlanInput& input);

}  // namespace leasehold::cuda
