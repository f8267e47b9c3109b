/// The matrices of one adapter in leased memory, for the forward pass.
///
/// Lifetime: the memory stays mapped while a step uses the matrices. The sequences that use them
/// depend on the adapter's lease in the step's GateSet. Threads: the engine's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/op_args.hpp"

namespace leasehold {

/// The weights of a dense layer that an adapter can change.
enum class AdapterTarget : std::uint8_t { Query, Key, Value, Output, Gate, Up, Down };
inline constexpr std::uint32_t kAdapterTargets =
    static_cast<std::uint32_t>(AdapterTarget::Down) + 1;

class AdapterMatrices {
 public:
  /// No weight of these layers is changed yet.
  explicit AdapterMatrices(std::uint32_t n_layers)
      : all_(std::size_t{n_layers} * kAdapterTargets) {}

  LowRankMatrix& of(std::uint32_t layer, AdapterTarget target) { return all_[slot(layer, target)]; }
  const LowRankMatrix& of(std::uint32_t layer, AdapterTarget target) const {
    return all_[slot(layer, target)];
  }
  /// By slot (AdapterTable).
  std::span<const LowRankMatrix> all() const { return all_; }
  static std::uint32_t slot(std::uint32_t layer, AdapterTarget target) {
    return layer * kAdapterTargets + static_cast<std::uint32_t>(target);
  }

 private:
  std::vector<LowRankMatrix> all_;  // [n_layers, kAdapterTargets]
};

}  // namespace leasehold
