/// Buffers that kernels of a CUDA backend share, and buffers for transfers between card and host.
#pragma once

#include "kernels/cuda/cuda_backend.hpp"
#include "kernels/cuda/device/sampling_params.hpp"

namespace leasehold::cuda {

struct CandidateRows {
  device::Candidate* out;        ///< [n_rows, k]
  std::uint32_t* has_nonfinite;  ///< [n_rows]
  std::uint32_t k;               ///< kMaxCandidates
};
/// The size of a buffer for the largest logits of `n_rows` rows, in the layout of candidate_rows().
constexpr std::size_t top_logits_bytes(std::uint32_t n_rows) {
  return n_rows * (device::kMaxCandidates * sizeof(device::Candidate) + sizeof(std::uint32_t));
}
/// The number of keys for all parts in which `n_rows` rows are searched.
constexpr std::size_t top_logit_keys(std::uint32_t n_rows) {
  return std::size_t{n_rows} * device::kMaxLogitParts * device::kMaxCandidates;
}
inline CandidateRows candidate_rows(std::byte* at, std::uint32_t n_rows) {
  auto* const candidates = reinterpret_cast<device::Candidate*>(at);
  constexpr std::uint32_t kEach = device::kMaxCandidates;
  return {
      .out = candidates,
      .has_nonfinite = reinterpret_cast<std::uint32_t*>(candidates + std::size_t{n_rows} * kEach),
      .k = kEach};
}

struct CudaBackend::Workspace {
  DeviceBuffer scratch;   ///< Handed out by allocate_scratch.
  DeviceBuffer prepared;  ///< Tiles of halves, or rounded rows.
  DeviceBuffer scales;    ///< Scales of tiles.
  DeviceBuffer partials;  ///< Sums of split matmuls, or data that the blocks of a row share.
  DeviceBuffer counters;  ///< counter_count for matmuls, then one per logit row.
  DeviceBuffer attention;
  DeviceBuffer top;        ///< Per logit row, in the layout of candidate_rows.
  DeviceBuffer part_keys;  ///< [max_logit_rows, kMaxLogitParts, kMaxCandidates]
  PinnedBuffer host_top;
  PinnedBuffer fetched;  ///< One row of logits.
  PinnedBuffer copies;   ///< Two halves, for copy_in.
  DeviceBuffer staging;  ///< For `write`; grows on demand.
  PinnedBuffer host_staging;
};

}  // namespace leasehold::cuda
