#include "worker/engine/leases/engine_weights.hpp"

#include <fmt/format.h>

namespace leasehold {

bool EngineWeights::is_put_to_sleep() const {
  const auto revoked_part = first_revoked_part();
  if (!revoked_part) return false;
  const LeaseDependency& lease = weights_->leases()[*revoked_part];
  // Relaxed: one store sets state and reason, and no other data depends on them.
  const LeaseWord word{lease.word->load(std::memory_order_relaxed)};
  return word.generation() == lease.granted.generation() &&
         word.reason() == RevokeReason::WorkerAsleep;
}

Result<void> EngineWeights::check() const {
  if (!weights_) return fail(Errc::NoModelLoaded, "no weights are bound to this engine yet");
  const auto revoked_part = weights_->first_revoked_part();
  if (!revoked_part) return {};
  const LeaseDependency& lease = weights_->leases()[*revoked_part];
  return fail(Errc::WeightsLoading,
              fmt::format("part {} of {} was revoked with lease {}.{} and is being restored",
                          weights_->plan().parts[*revoked_part].name, model_, lease.slot,
                          lease.granted.generation()));
}

std::unexpected<Error> EngineWeights::step_failed(std::string_view what) const {
  return fail(Errc::EngineDecodeFailed, fmt::format("{}: {}", what, check().error().detail));
}

}  // namespace leasehold
