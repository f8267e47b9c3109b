#include "broker/decide/lease/replace.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/adopt.hpp"
#include "broker/decide/lease/grant.hpp"
#include "broker/decide/lease/handover.hpp"
#include "broker/decide/lease/hold.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/memory/drain.hpp"
#include "broker/decide/memory/unavailable.hpp"
#include "broker/decide/worker/choose_worker.hpp"
#include "broker/decide/worker/worker_replace.hpp"

namespace leasehold {
namespace {

/// Retry interval while an earlier replacement ends.
constexpr std::int64_t kEarlierEnds_ms = 100;

bool is_reclaimed(const LeaseRecord& record) {
  return record.drain_deadline != TimePoint{} &&
         record.drain_reason == RevokeReason::PreemptedByPriority;
}

Result<void> require_replaceable(State& state, const LeaseRecord& old) {
  const std::string lease = to_string(old.id());
  TRY(require_live(old));
  if (!old.acquired) {
    return fail(Errc::BadRequest, "the lease is not mapped yet; wait for its reply first");
  }
  if (old.replaced_by) {
    return fail(Errc::IllegalTransition,
                fmt::format("lease {} was replaced by lease {}; replace that one", lease,
                            to_string(*old.replaced_by)));
  }
  if (is_reclaimed(old)) {
    return fail(Errc::Draining,
                fmt::format("lease {} gives its memory to guaranteed tenants; acquire a new lease "
                            "once it has ended",
                            lease));
  }
  if (!old.replaces) return {};
  const LeaseRecord* earlier = state.leases.find_open(*old.replaces);
  if (earlier == nullptr || earlier->is(LeaseState::Fenced)) return {};
  return std::unexpected(Error{
      .code = Errc::RebindRateLimited,
      .detail = fmt::format("lease {}, which lease {} replaces, is not fenced yet; retry in {} ms",
                            to_string(*old.replaces), lease, kEarlierEnds_ms),
      .retry_after_ms = kEarlierEnds_ms});
}

}  // namespace

CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::LeaseReplace& replace) {
  State& state = decision.state;
  if (state.stopping) return std::unexpected(broker_stopping());
  if (!is_move(replace.mode)) {
    return fail(Errc::BadRequest, fmt::format("mode is {}, which needs no live lease; acquire one",
                                              wire::name(replace.mode)));
  }
  const LeaseRecord& old = *TRY(find_held(state, caller, replace.lease));
  TRY(require_replaceable(state, old));
  TRY(require_worker_attached(state, old));
  if (old.api_key.value.empty()) (void)TRY(state.tenants.find_for(old.tenant, caller.uid));
  if (state.tenants.find(old.tenant)->draining) return std::unexpected(tenant_draining(old.tenant));
  const bool fails_over = replace.mode == wire::RebindMode::Failover;
  const Worker& before = *state.workers.find(old.worker());
  const Worker* worker = fails_over ? TRY(successor_for(state, old, replace.any_arithmetic))
                                    : TRY(choose_worker(state, {.name = before.name}));
  const wire::LeaseAcquire same{
      .tenant = old.tenant,
      .blocks = old.charged_blocks,
      .ttl_ms = std::chrono::duration_cast<std::chrono::milliseconds>(old.ttl).count(),
      .worker = worker->name,
      .replaces = old.id(),
      .request_id = replace.request_id};
  return grant_tenant_lease(
      decision, caller, same,
      {.worker = worker,
       .replaces = old.id(),
       .as = replace.mode,
       .api_key = old.api_key,
       .first_extents = fails_over && shares_kv(*worker, before) ? std::optional<std::uint32_t>(1)
                                                                 : std::nullopt});
}

/// If an operator already drains the old lease, the earlier deadline applies.
void drain_replaced(Decision& decision, LeaseRecord& record) {
  if (!record.replace_mode) return;
  if (record.replace_mode == wire::RebindMode::Failover) return finish_handover(decision, record);
  LeaseRecord* old = decision.state.leases.find(*record.replaces).value_or(nullptr);
  if (old == nullptr || !old->is(LeaseState::Live) || is_reclaimed(*old)) return;
  TimePoint until = decision.now + kReplaceGrace;
  if (old->drain_deadline != TimePoint{}) until = std::min(until, old->drain_deadline);
  start_drain(decision, *old, {.until = until}, {});
}

}  // namespace leasehold
