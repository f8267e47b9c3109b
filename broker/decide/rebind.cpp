#include "broker/decide/rebind.hpp"

#include <fmt/format.h>

namespace leasehold {

Result<void> admit_rebind(State& state, const wire::LeaseAcquire& acquire, TimePoint now) {
  const Duration wait = state.tenants.take_rebind(acquire.tenant, acquire.replaces, now);
  if (wait == Duration::zero()) return {};
  const wire::TenantPolicy& policy = state.tenants.find(acquire.tenant)->policy;
  const auto wait_ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  return std::unexpected(Error{
      .code = Errc::RebindRateLimited,
      .detail = fmt::format("tenant {} exceeds its rebind limit, {} at once and {} per minute; "
                            "retry in {} ms",
                            acquire.tenant.value, policy.rebind_burst, policy.rebinds_per_minute,
                            wait_ms),
      .retry_after_ms = wait_ms});
}

}  // namespace leasehold
