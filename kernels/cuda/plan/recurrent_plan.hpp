/// Plans convolutions and recurrences.
///
/// Pointers in the arguments are device addresses. A leased address, which only its permit opens,
/// is a separate argument. Pure; the results have the reference backend's bits.
#pragma once

#include <span>
#include <vector>

#include "kernels/cuda/device/recurrent_params.hpp"
#include "kernels/cuda/plan/plan_context.hpp"

namespace leasehold::cuda {

/// `weight` and `bias` (null: none) are those of `args`.
KernelLaunch plan_convolution(const PlanContext& context, const ConvolutionArgs& args,
                              device::StateTables states, const float* weight, const float* bias);

/// The vectors of a recurrence on the device.
struct RecurrenceVectors {
  const float* step_bias;
  const float* decay_rates;
  const float* skip;  ///< Null: none.
};

/// The widest keys whose recurrence fits the shared memory of a block.
std::uint32_t most_state_keys(std::uint32_t max_shared_bytes);

/// The places of the pieces of a layer's heads. Precondition: they lie as StateLayout places them.
device::HeadPieces head_pieces(std::span<const StatePiece> pieces);

/// Two launches: the first one prepares the rows, the second one reaches tenant memory. `pieces`
/// are those of args.pieces.
std::vector<KernelLaunch> plan_recurrence(const PlanContext& context, const RecurrenceArgs& args,
                                          device::StateTables states,
                                          const device::HeadPieces& pieces,
                                          const RecurrenceVectors& vectors);

}  // namespace leasehold::cuda
