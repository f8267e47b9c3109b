/// The weights of an engine's model, and the errors of requests and steps while a part of them is
/// revoked.
///
/// Invariant: once bound, the weights stay bound; a revoked part is restored in place.
///
/// Threads: one (the engine's), except `unmap`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "worker/model/weights.hpp"

namespace leasehold {

class EngineWeights {
 public:
  explicit EngineWeights(std::string model) : model_(std::move(model)) {}

  /// Precondition: called once.
  void bind(Weights weights) { weights_.emplace(std::move(weights)); }
  bool is_bound() const { return weights_.has_value(); }

  /// Precondition, also of `leases`, `size_bytes` and `step_failed`: the weights are bound.
  Weights& get() { return *weights_; }
  std::span<const LeaseDependency> leases() const { return weights_->leases(); }

  /// Of all parts.
  std::uint64_t size_bytes() const { return weights_->plan().size_bytes(); }

  /// The first revoked part, if any. Only reads the lease words.
  std::optional<std::size_t> first_revoked_part() const {
    return weights_ ? weights_->first_revoked_part() : std::nullopt;
  }
  /// True if that part was revoked with `worker_asleep`. Only reads the lease words.
  bool is_put_to_sleep() const;
  /// Errors: NoModelLoaded, WeightsLoading.
  Result<void> check() const;
  /// EngineDecodeFailed, which names the revoked part after `what`. Precondition: a part is
  /// revoked.
  std::unexpected<Error> step_failed(std::string_view what) const;

  /// Calls Weights::unmap. Threads: those of Weights::unmap, once the weights are bound.
  bool unmap(LeaseId lease) { return weights_ && weights_->unmap(lease); }

 private:
  std::string model_;
  std::optional<Weights> weights_;
};

}  // namespace leasehold
