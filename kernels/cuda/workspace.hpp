/// What a CUDA backend's kernels leave for each other, and what goes between card and host.
#pragma once

#include "kernels/cuda/cuda_backend.hpp"
#include "kernels/cuda/device/sampling_params.hpp"

namespace leasehold::cuda {

/// Room for the largest logits of so many rows, and where which of it lies.
constexpr std::size_t top_logits_bytes(std::uint32_t n_rows) {
  return n_rows * (device::kMaxCandidates * sizeof(device::Candidate) + sizeof(std::uint32_t));
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
  DeviceBuffer scratch;  ///< What allocate_scratch gives out.
  DeviceBuffer halves;
  DeviceBuffer scales;
  DeviceBuffer partials;
  DeviceBuffer counters;
  DeviceBuffer attention;
  DeviceBuffer top;  ///< Of each logit row, as candidate_rows cuts it.
  PinnedBuffer host_top;
  PinnedBuffer fetched;  ///< A row of logits.
  PinnedBuffer copies;   ///< Two halves, for copy_in.
  DeviceBuffer staging;  ///< Of `write`; grows.
  PinnedBuffer host_staging;
};

}  // namespace leasehold::cuda
