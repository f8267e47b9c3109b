// The part of Engine that queues requests while a part of the weights is revoked.
#include <fmt/format.h>

#include "worker/engine/engine.hpp"

namespace leasehold {
namespace {

// Clients that do not submit again are forgotten, the oldest first.
constexpr std::size_t kMaxRefusedRebinds = 1024;

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
  const bool is_first = is_first_refusal(request.engine_request_id);
  if (!weights && request.rebound_from && is_first) {
    refused_rebinds_.push_back(request.engine_request_id);
    if (refused_rebinds_.size() > kMaxRefusedRebinds) refused_rebinds_.pop_front();
    return fail(Errc::EngineLeaseFenced,
                fmt::format("{}; submit again under lease {}, and the request waits",
                            weights.error().detail, to_string(request.lease)));
  }
  TRY(check_tokens(request));
  Result<void> queued = scheduler_.submit(std::move(request));
  if (weights || queued || !is_queue_full(queued.error().code)) return queued;
  return fail(Errc::WeightsLoading,
              fmt::format("{}; {}", weights.error().detail, queued.error().detail));
}

/// False once for each rebind that was refused.
bool Engine::is_first_refusal(const RequestId& engine_request_id) {
  return std::erase(refused_rebinds_, engine_request_id) == 0;
}

}  // namespace leasehold
