// The part of Engine that keeps the limits on tokens per minute.
#include "worker/engine/engine.hpp"

namespace leasehold {

void Engine::set_quota(const wire::TenantQuota& quota) {
  scheduler_.set_quota(quota);
  token_allowances_.set_quota(quota, deps_.clock->now());
}

/// After all other checks, so that a request that can never run is not asked to wait.
Result<void> Engine::check_tokens(const PromptRequest& request) {
  const TenantId& tenant = request.tenant;
  if (!token_allowances_.is_limited(tenant) || !scheduler_.check(request)) return {};
  return token_allowances_.check(tenant, known_tokens(request),
                                 scheduler_.prompt_tokens_pending(tenant), deps_.clock->now());
}

/// Precondition: the part is not committed yet.
void Engine::charge_tokens(const PlannedRows& part, std::uint32_t index, TimePoint now) {
  const std::uint32_t emitted = next_token(index) ? 1 : 0;
  token_allowances_.charge(part.sequence->request.tenant,
                           part.sequence->prompt_rows(part.n_rows) + emitted, now);
}

}  // namespace leasehold
