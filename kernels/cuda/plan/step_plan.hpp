/// Plans the launches of a step outside the layers: sampling, scattered copies, segment gates.
/// Pure; pointers are device addresses.
#pragma once

#include "kernels/cuda/device/sampling_params.hpp"
#include "kernels/cuda/device/step_params.hpp"
#include "kernels/cuda/plan/plan_context.hpp"

namespace leasehold::cuda {

/// The number of parts per row that keeps a card of n_sms SMs busy with n_rows rows of logits.
std::uint32_t logit_parts(std::uint32_t n_rows, std::uint32_t n_vocab, std::uint32_t n_sms);

/// Plans the search of at most n_rows logit rows; DeviceStep::n_logit_rows has the actual number.
/// The parts do not change the result.
KernelLaunch plan_top_candidates(const device::TopCandidatesParams& params, std::uint32_t n_rows,
                                 std::uint32_t n_parts);

/// The most pieces of one launch; its grid and its counter hold no more.
inline constexpr std::uint32_t kMaxScatterPieces = (1u << 16) - 1;

/// Plans the writes of 1 to kMaxScatterPieces pieces. `largest_bytes` is the size of the largest
/// piece that is written first.
KernelLaunch plan_scatter(const device::ScatterParams& params, std::uint32_t largest_bytes);

/// Plans lh_conditional_gate if there is a condition; only libraries with has_conditional_gate()
/// have this kernel.
KernelLaunch plan_segment_gate(const device::SegmentGateParams& params);

}  // namespace leasehold::cuda
