#include "kernels/cuda/step_recorder.hpp"

#include <algorithm>
#include <bit>

namespace leasehold::cuda {
namespace {

// Attention's grid grows with the positions; blocks beyond a row's end return at once.
constexpr std::uint32_t kMinPositions = 256;

}  // namespace

GraphShape GraphShape::bucket_for(std::uint32_t n_rows, std::uint32_t longest) {
  return {.n_rows = std::bit_ceil(n_rows),
          .longest = std::bit_ceil(std::max(longest, kMinPositions))};
}

void StepRecorder::add(KernelLaunch launch, std::uint16_t layer) {
  const std::size_t segment = layer / segment_layers_;
  if (segments_.size() <= segment) segments_.resize(segment + 1);
  segments_[segment].push_back(std::move(launch));
}

}  // namespace leasehold::cuda
