/// Parameters of the search for the largest logits on the device, so that the host need not fetch
/// whole rows. C++20-clean.
///
/// Several blocks search a row. Each of them searches a *part* of consecutive logits. The last
/// block of a row to finish merges the parts.
///
/// Rows are those of the logits, counted by DeviceStep::n_logit_rows. A logit that is not finite is
/// a numeric fault of its row (worker/text/sampling/sampler.hpp); the other results of that row are
/// then meaningless. Of equal logits the lower index comes first; zeros of both signs are equal.
#pragma once

#include "kernels/cuda/device/gate.hpp"

namespace leasehold::device {

inline constexpr std::uint32_t kMaxCandidates = 64;
inline constexpr std::uint32_t kMaxLogitParts = 16;
inline constexpr std::uint32_t kNoToken = 0xffffffffu;

struct Candidate {
  std::uint32_t token;  ///< kNoToken if the vocabulary has fewer tokens.
  float logit;
};

struct TopCandidatesParams {
  KernelGate gate;
  const float* logits;           ///< [n_logit_rows, n_vocab]
  Candidate* out;                ///< [n_logit_rows, k], descending
  std::uint32_t* has_nonfinite;  ///< [n_logit_rows]
  std::uint64_t* part_keys;      ///< [n_logit_rows, n_parts, k] scratch
  std::uint32_t* counters;       ///< [n_logit_rows], zero between launches
  std::uint32_t n_vocab;
  std::uint32_t k;  ///< 1 ... kMaxCandidates
};

}  // namespace leasehold::device
