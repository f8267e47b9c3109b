/// A local model on a card: memory as a broker's device agent makes it, the CUDA backend, and
/// weights made up in their placement when nobody needs them to mean anything.
///
/// Lifetime: the card outlives it, and it every model. Threads: the card's.
#pragma once

#include "kernels/cuda/cuda_backend.hpp"
#include "tools/checks/gpu_check/card.hpp"
#include "tools/local_model/local_model.hpp"

namespace leasehold::gpu_check {

class CardPlacement final : public LocalPlacement {
 public:
  enum class WeightsSource : std::uint8_t { File, Synthetic };
  CardPlacement(Card& card, cuda::CudaOptions options, WeightsSource weights)
      : card_(&card), options_(options), weights_(weights) {}

  Result<std::unique_ptr<Backend>> make_backend(const BackendLimits& limits,
                                                const ThreadGate& gate) override;
  /// Full of small halves.
  Result<LeasedMapping> allocate(std::size_t size_bytes) override;
  /// Random bytes of which scales are small numbers, whatever the format: products stay finite, and
  /// reading them costs what real ones cost.
  Result<std::optional<LeasedMapping>> make_weights(const WeightsLayout& layout) override;

 private:
  Card* card_;
  cuda::CudaOptions options_;
  WeightsSource weights_;
};

}  // namespace leasehold::gpu_check
