/// Places a local model on a GPU with the CUDA backend, memory that is allocated as the device
/// agent does, and optionally random weights.
///
/// Lifetime: the card outlives the placement, which outlives every model. Threads: the card's
/// thread.
#pragma once

#include "kernels/cuda/cuda_backend.hpp"
#include "tools/checks/gpu_check/card.hpp"
#include "tools/local_model/local_model.hpp"

namespace leasehold::gpu_check {

/// Most units of a step that replays a graph.
inline constexpr std::uint64_t kMaxUnitsOfGraph = 4;

class CardPlacement final : public LocalPlacement {
 public:
  enum class WeightsSource : std::uint8_t { File, Synthetic };
  CardPlacement(Card& card, cuda::CudaOptions options, WeightsSource weights)
      : card_(&card), options_(options), weights_(weights) {}

  Result<std::unique_ptr<Backend>> make_backend(const BackendLimits& limits,
                                                const ThreadGate& gate) override;
  /// Allocates memory and fills it with small f16 values.
  Result<LeasedMapping> allocate(std::size_t size_bytes) override;
  /// Makes random bytes with small scales in every format, so that products stay finite and reads
  /// cost the same as for real weights.
  Result<std::optional<LeasedMapping>> make_weights(const WeightsLayout& layout) override;

 private:
  Card* card_;
  cuda::CudaOptions options_;
  WeightsSource weights_;
};

}  // namespace leasehold::gpu_check
