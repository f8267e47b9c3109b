/// Finding the largest logits on the device, so that rows need not be brought to the host.
/// C++20-clean.
///
/// Rows are those of the logits, counted by DeviceStep::n_logit_rows. A logit that is no finite
/// number is a numeric fault of its row (worker/text/sampling/sampler.hpp); the row's other results
/// then mean nothing. Of equal logits the one of the lower index comes first; zeros of both signs
/// are equal.
#pragma once

#include "kernels/cuda/device/gate.hpp"

namespace leasehold::device {

inline constexpr std::uint32_t kMaxCandidates = 64;
inline constexpr std::uint32_t kNoToken = 0xffffffffu;

struct Candidate {
  std::uint32_t token;  ///< kNoToken where the vocabulary has no more.
  float logit;
};

struct TopCandidatesParams {
  KernelGate gate;
  const float* logits;           ///< [n_logit_rows, n_vocab]
  Candidate* out;                ///< [n_logit_rows, k], the largest first
  std::uint32_t* has_nonfinite;  ///< [n_logit_rows]
  std::uint32_t n_vocab;
  std::uint32_t k;  ///< 1 ... kMaxCandidates
};

}  // namespace leasehold::device
