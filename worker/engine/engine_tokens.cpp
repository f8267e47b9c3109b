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

/// Precondition: the part is not committed yet; `n_rows` of its rows will be.
void Engine::charge_tokens(const Sequence& sequence, std::uint32_t n_rows, std::uint32_t index,
                           TimePoint now) {
  const auto emitted = static_cast<std::uint32_t>(drawer_.next_tokens(index).size());
  token_allowances_.charge(sequence.request.tenant, sequence.prompt_rows(n_rows) + emitted, now);
}

}  // namespace leasehold
