#include "broker/decide/lease/rebind.hpp"

#include <fmt/format.h>

#include <algorithm>

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
  if (record.scope == wire::LeaseScope::Adapter) return;  // it is not replaced by a rebind
  if (!record.acquired && is_lost_by_worker(reason)) return give_back_rebind(state, record);
  // The lease that replaces this one has already been charged for the rebind.
  if (reason == RevokeReason::WorkerReplaced && record.replaced_by) return;
  state.tenants.note_revoked(record.tenant, record.id(), reason, now);
}

namespace {

/// Retry intervals: the first rebind in the queue retries often, because a drain may end at any
/// time; later ones retry less often.
constexpr std::int64_t kAskAgain_ms = 50;
constexpr std::int64_t kMostAskAgain_ms = 1'000;
static_assert(RebindPlaces::kPlaceTimeout > 2 * std::chrono::milliseconds(kMostAskAgain_ms));

MemoryDemand demand_of(const State& state, const wire::LeaseAcquire& acquire,
                       const ExtentDemand& demand) {
  return {.tenant = demand.tenant,
          .replaces = acquire.replaces,
          .worker = demand.worker,
          .extents = demand.extents,
          .is_scavenger = is_of_scavenger(state, demand.tenant, demand.scavenger)};
}

/// The number of extents that the replaced lease had. Nothing if the lease is live or the broker
/// does not know it any more.
std::optional<std::uint32_t> extents_before_end(State& state, LeaseId replaced,
                                                AttachmentId worker) {
  const auto found = state.leases.find(replaced);
  if (!found || (*found)->is(LeaseState::Live)) return std::nullopt;
  const std::uint32_t per_extent = std::max(1u, state.workers.find(worker)->blocks_per_extent);
  return std::max(1u, ((*found)->charged_blocks + per_extent - 1) / per_extent);
}

}  // namespace

Result<void> require_turn(State& state, const wire::LeaseAcquire& acquire,
                          const ExtentDemand& demand, TimePoint now) {
  TRY(require_room(state, demand, now));
  const PlacesBefore before = state.places.before(demand_of(state, acquire, demand), now);
  const std::uint64_t free = state.extents.free_extents_for(demand.worker);
  if (demand.extents + before.extents <= free) return {};
  if (!demand.scavenger && demand.extents <= unused_reserve(state, demand.tenant)) return {};
  return fail(Errc::PoolExhausted,
              fmt::format("{} extents requested, {} are free, but kept for rebinds that came "
                          "before: retry when leases end, or ask for fewer",
                          demand.extents, free));
}

Error keep_place(State& state, const wire::LeaseAcquire& acquire, const ExtentDemand& demand,
                 Error why, TimePoint now) {
  if (why.code != Errc::PoolExhausted || !acquire.replaces) return why;
  MemoryDemand waiting = demand_of(state, acquire, demand);
  const auto had = extents_before_end(state, *acquire.replaces, demand.worker);
  if (!had && !state.places.has(waiting)) return why;
  waiting.extents = std::min(waiting.extents, had.value_or(1));
  if (!state.places.keep(waiting, now)) return why;
  const auto before = static_cast<std::int64_t>(state.places.before(waiting, now).count);
  why.retry_after_ms = std::min(kMostAskAgain_ms, kAskAgain_ms * (1 + before));
  why.detail += fmt::format("; {} rebinds wait before this one, ask again in {} ms", before,
                            why.retry_after_ms);
  return why;
}

}  // namespace leasehold
