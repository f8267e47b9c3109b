/// Places a local model on a GPU: memory as the device agent makes it, the CUDA backend, and
/// optionally random weights.
///
/// Lifetime: the card outlives it; it outlives every model. Threads: the card's.
#pragma once

#include "kernels/cuda/cuda_backend.hpp"
#include "tests/checks/gpu_check/card.hpp"
#include "tests/checks/local_model/local_model.hpp"

namespace leasehold::gpu_check {

/// A step that replays a graph passes at most this many units.
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
  /// Makes random bytes with small scales in every format: products stay finite, and reads cost the
  /// same as for real weights.
  Result<std::optional<LeasedMapping>> make_weights(const WeightsLayout& layout) override;

  /// The next step of the newest backend makes a graph again. Precondition: that backend lives.
  void forget_graphs() { backend_->forget_graphs(); }

 private:
  Card* card_;
  cuda::CudaOptions options_;
  cuda::CudaBackend* backend_ = nullptr;  // the newest
  WeightsSource weights_;
};

}  // namespace leasehold::gpu_check
