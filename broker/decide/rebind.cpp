#include "broker/decide/rebind.hpp"

#include <fmt/format.h>

namespace leasehold {

namespace {

bool is_lost_by_worker(RevokeReason reason) {
  return reason == RevokeReason::WorkerGone || reason == RevokeReason::WorkerHung ||
         reason == RevokeReason::WorkerReplaced || reason == RevokeReason::WorkerUntrusted ||
         reason == RevokeReason::DeviceFault;
}

}  // namespace

Result<std::optional<RebindToken>> admit_rebind(State& state, const wire::LeaseAcquire& acquire,
                                                TimePoint now) {
  Tenant& tenant = *state.tenants.find(acquire.tenant);
  auto token = tenant.rebinds.take(acquire.replaces, now);
  if (token) return *std::move(token);
  const wire::TenantPolicy& policy = tenant.policy;
  const auto wait_ms = std::chrono::ceil<std::chrono::milliseconds>(token.error()).count();
  return std::unexpected(Error{
      .code = Errc::RebindRateLimited,
      .detail = fmt::format("tenant {} exceeds its rebind limit, {} at once and {} per minute; "
                            "retry in {} ms",
                            acquire.tenant.value, policy.rebind_burst, policy.rebinds_per_minute,
                            wait_ms),
      .retry_after_ms = wait_ms});
}

void give_back_rebind(State& state, LeaseRecord& record) {
  Tenant* tenant = state.tenants.find(record.tenant);
  if (tenant != nullptr && record.rebind) tenant->rebinds.give_back(*record.rebind);
  record.rebind.reset();
}

void note_rebindable(State& state, LeaseRecord& record, RevokeReason reason, TimePoint now) {
  if (!record.acquired && is_lost_by_worker(reason)) return give_back_rebind(state, record);
  // The lease that replaces this one has already been charged for the rebind.
  if (reason == RevokeReason::WorkerReplaced && record.replaced_by) return;
  state.tenants.note_revoked(record.tenant, record.id(), reason, now);
}

}  // namespace leasehold
