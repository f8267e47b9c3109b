#include "worker/engine/leases/engine_weights.hpp"

#include <fmt/format.h>

namespace leasehold {

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
