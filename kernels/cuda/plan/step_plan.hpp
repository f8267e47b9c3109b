/// Plans the launches of a step outside the layers: sampling, scattered copies, segment gates.
/// Pure; pointers are device addresses.
#pragma once

#include "kernels/cuda/device/sampling_params.hpp"
#include "kernels/cuda/device/step_params.hpp"
#include "kernels/cuda/plan/plan_context.hpp"

namespace leasehold::cuda {

/// The rows of a step that have logits.
struct LogitRows {
  const float* logits = nullptr;  ///< [n_rows, n_vocab]
  std::uint32_t n_rows = 0;       ///< The maximum; DeviceStep::n_logit_rows has the actual number.
  std::uint32_t n_vocab = 0;
};
struct CandidateRows {
  device::Candidate* out = nullptr;        ///< [n_rows, k]
  std::uint32_t* has_nonfinite = nullptr;  ///< [n_rows]
  std::uint32_t k = 0;                     ///< 1 ... kMaxCandidates
};
KernelLaunch plan_top_candidates(const PlanContext& context, const LogitRows& rows,
                                 const CandidateRows& candidates);

struct ScatterWork {
  const std::byte* staging = nullptr;
  const device::ScatterPiece* pieces = nullptr;  ///< [n_pieces]
  std::uint32_t n_pieces = 0;                    ///< At least 1.
  std::uint32_t largest_bytes = 0;               ///< Of the largest piece.
};
KernelLaunch plan_scatter(const PlanContext& context, const ScatterWork& work);

/// `seen` is the device address of a word that the host reads; `condition` belongs to the next
/// segment, or is 0.
KernelLaunch plan_segment_gate(const PlanContext& context, std::uint32_t segment,
                               std::uint64_t* seen, std::uint64_t condition);

}  // namespace leasehold::cuda
