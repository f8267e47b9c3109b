// The part of Engine that queues requests while a part of the weights is revoked.
#include <fmt/format.h>

#include "worker/engine/engine.hpp"

namespace leasehold {
namespace {

bool is_queue_full(Errc code) {
  return code == Errc::QuotaConcurrent || code == Errc::QueueFull;
}

}  // namespace

Result<void> Engine::check_weights() const {
  if (!weights_) return fail(Errc::NoModelLoaded, "no weights are bound to this engine yet");
  const auto revoked_part = weights_->first_revoked_part();
  if (!revoked_part) return {};
  const LeaseDependency& lease = weights_->leases()[*revoked_part];
  return fail(Errc::WeightsLoading,
              fmt::format("part {} of {} was revoked with lease {}.{} and is being restored",
                          weights_->plan().parts[*revoked_part].name, config_.model.name,
                          lease.slot, lease.granted.generation()));
}

Result<void> Engine::queue(PromptRequest request) {
  const Result<void> weights = check_weights();
  const RequestId id = request.engine_request_id;
  if (!weights && request.rebound_from && !refused_rebinds_.contains(id)) {
    (void)refused_rebinds_.push({.owner = request.tenant, .key = id});
    return fail(Errc::EngineLeaseFenced,
                fmt::format("{}; submit again under lease {}, and the request waits",
                            weights.error().detail, to_string(request.lease)));
  }
  TRY(take_tokens(request));
  Result<void> queued = scheduler_.submit(std::move(request));
  if (queued) (void)refused_rebinds_.erase(id);
  if (weights || queued || !is_queue_full(queued.error().code)) return queued;
  return fail(Errc::WeightsLoading,
              fmt::format("{}; {}", weights.error().detail, queued.error().detail));
}

}  // namespace leasehold
