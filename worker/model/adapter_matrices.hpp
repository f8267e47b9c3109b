/// The matrices of one adapter in leased memory, for the forward pass.
///
/// Lifetime: the memory stays mapped while a step uses the matrices. The sequences that use them
/// depend on the adapter's lease in the step's GateSet. Threads: the engine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/op_args.hpp"

namespace leasehold {

/// The weights of a dense layer that an adapter can change.
enum class AdapterTarget : std::uint8_t { Query, Key, Value, Output, Gate, Up, Down };
inline constexpr std::size_t kAdapterTargets = static_cast<std::size_t>(AdapterTarget::Down) + 1;

class AdapterMatrices {
 public:
  /// No weight of these layers is changed yet.
  explicit AdapterMatrices(std::uint32_t n_layers) : all_(n_layers * kAdapterTargets) {}

  LowRankMatrix& of(std::uint32_t layer, AdapterTarget target) {
    return all_[index(layer, target)];
  }
  const LowRankMatrix& of(std::uint32_t layer, AdapterTarget target) const {
    return all_[index(layer, target)];
  }

 private:
  static std::size_t index(std::uint32_t layer, AdapterTarget target) {
    return layer * kAdapterTargets + static_cast<std::size_t>(target);
  }

  std::vector<LowRankMatrix> all_;  // [n_layers, kAdapterTargets]
};

}  // namespace leasehold
