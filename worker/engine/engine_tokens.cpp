// The part of Engine that keeps the limits on tokens per minute.
#include <limits>

#include "worker/engine/engine.hpp"

namespace leasehold {

void Engine::set_quota(const wire::TenantQuota& quota) {
  give_back_tokens();
  scheduler_.set_quota(quota);
  token_allowances_.set_quota(quota, deps_.clock->now());
}

void Engine::shorten(PromptRequest& request) const {
  const auto limit = token_allowances_.most_per_request(request.tenant);
  constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();
  scheduler_.shorten(request, limit.value_or(kNoLimit));
}

/// Takes the request's tokens from the tenant's allowance. Runs after all other checks, so that a
/// request that can never run is not asked to wait.
Result<void> Engine::take_tokens(PromptRequest& request) {
  give_back_tokens();
  request.unused_tokens = 0;
  if (!token_allowances_.most_per_request(request.tenant) || !scheduler_.check(request)) return {};
  const std::uint64_t all = scheduler_.most_positions(request);
  const std::uint64_t at_least = known_tokens(request) + 1;
  const TokenDemand demand{.tokens = all,
                           .needed = request.may_shorten ? std::min(all, at_least) : all};
  TRY(token_allowances_.take(request.tenant, demand, deps_.clock->now()));
  request.unused_tokens = all;
  return {};
}

void Engine::give_back_tokens() {
  for (const auto& [tenant, tokens] : scheduler_.take_unused_tokens())
    token_allowances_.give_back(tenant, tokens);
}

}  // namespace leasehold
