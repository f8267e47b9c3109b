#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/grant.hpp"
#include "broker/decide/lease/holder.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/memory/reclaim.hpp"
#include "broker/decide/memory/reserves.hpp"
#include "broker/decide/memory/return_memory.hpp"
#include "broker/decide/tenant/publish.hpp"
#include "broker/decide/worker/liveness.hpp"

namespace leasehold {
namespace {

/// Finds a lease that the caller may resize: the holder and the lease's worker may. A worker that
/// asks for another worker's lease gets PermissionDenied instead of `lease_not_held_error`: workers
/// serve all tenants of their user and may know which leases exist.
Result<LeaseRecord*> find_resizable(State& state, const Caller& caller, LeaseId lease,
                                    std::uint32_t extents) {
  if (extents == 0 || extents > kDefaultMaxExtents) {
    return fail(Errc::BadRequest, fmt::format("extents is {}; it must be 1 to 1024", extents));
  }
  const auto found = state.leases.find(lease);
  const Worker* worker = state.workers.find_by_connection(caller.connection);
  const bool holds_it =
      found && (*found)->scope != wire::LeaseScope::Engine && (*found)->holder == caller.connection;
  if (worker == nullptr && !holds_it) return lease_not_held_error(lease);
  LeaseRecord* record = TRY(found);
  const bool serves_it = worker != nullptr && record->worker() == worker->id &&
                         record->scope != wire::LeaseScope::Engine;
  if (!serves_it && !holds_it) {
    return fail(Errc::PermissionDenied,
                fmt::format("the caller neither holds nor serves lease {}", to_string(lease)));
  }
  TRY(require_live(*record));
  if (!record->acquired) {
    return fail(Errc::BadRequest,
                "the lease is not mapped yet; wait for the reply to lease.acquire");
  }
  if (record->scope == wire::LeaseScope::Adapter) {
    return fail(Errc::PermissionDenied,
                fmt::format("lease {} holds an adapter and is not resized", to_string(lease)));
  }
  TRY(require_worker_attached(state, *record));
  return record;
}

/// A worker may grow a lease up to an earlier, higher quota: it does so only for requests that were
/// running when the quota was lowered.
std::uint32_t quota_for_growth(State& state, const Caller& caller, const LeaseRecord& record) {
  const std::uint32_t quota = state.tenants.find(record.tenant)->policy.max_blocks;
  const Worker* worker = state.workers.find_by_connection(caller.connection);
  return worker == nullptr ? quota : std::max(quota, record.earlier_max_blocks);
}

/// The named extents that the lease owns in this pool, without duplicates.
std::vector<ExtentId> returnable(const State& state, const LeaseRecord& record, MemoryPool pool,
                                 std::vector<ExtentId> named) {
  std::ranges::sort(named);
  const auto repeated = std::ranges::unique(named);
  named.erase(repeated.begin(), repeated.end());
  std::erase_if(named, [&](ExtentId extent) {
    const ExtentRecord* found = state.extents.find(extent);
    return found == nullptr || found->lease != record.id() || found->pool != pool ||
           found->state != ExtentState::Owned;
  });
  return named;
}

/// Removes one entry only, because all calls of the broker itself have the same id.
bool erase_one(std::vector<CallId>& calls, CallId call) {
  const auto found = std::ranges::find(calls, call);
  if (found == calls.end()) return false;
  calls.erase(found);
  return true;
}

}  // namespace

CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseGrow& grow) {
  State& state = decision.state;
  LeaseRecord& record = *TRY(find_resizable(state, caller, grow.lease, grow.extents));
  if (record.scope == wire::LeaseScope::Shared) return grow_shared(decision, caller, record, grow);
  if (grow.pool == MemoryPool::Swap) return grow_swap(decision, caller, record, grow.extents);
  const std::uint32_t per_extent = state.workers.find(record.worker())->blocks_per_extent;
  const std::uint32_t quota = quota_for_growth(state, caller, record);
  const std::uint32_t others = charged_to_others(state, record.tenant, record.id());
  const std::uint32_t ceiling = quota - std::min(quota, others);
  const std::uint64_t more = std::uint64_t{grow.extents - 1} * per_extent;
  if (record.charged_blocks + more >= ceiling) {  // the last extent would hold no usable block
    const Error beyond{Errc::QuotaBlocks,
                       fmt::format("lease {} holds {} of at most {} blocks; release some first",
                                   to_string(grow.lease), record.charged_blocks, ceiling)};
    if (record.scavenger) return std::unexpected(beyond);
    return refuse_or_end_own_scavengers(decision, record.tenant, beyond);
  }
  const ExtentDemand demand{record.tenant, record.worker(), grow.extents, record.scavenger,
                            ExtentDemand::For::Growth};
  if (const auto room = require_room(state, demand, decision.now); !room) {
    return refuse_or_reclaim(decision, caller.call, demand, room.error());
  }
  if (!record.scavenger) state.tenants.find(record.tenant)->claim = {};
  record.charged_blocks = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(record.charged_blocks + more + per_extent, ceiling));
  decision.touch(record.id());
  grant_extents(decision, record, {.call = caller.call, .count = grow.extents});
  return std::nullopt;
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseShrink& shrink) {
  LeaseRecord& record = *TRY(find_resizable(decision.state, caller, shrink.lease, shrink.extents));
  record.calls.shrinks.push_back(caller.call);
  decision.add(effect::SendReclaim{record.worker(), record.id(), caller.call, shrink.extents});
  note_call_sent(decision, record);
  return std::nullopt;
}

void decide_event(Decision& decision, const ReclaimAnswered& answered) {
  const auto found = decision.state.leases.find(answered.lease);
  if (!found || !(*found)->is(LeaseState::Live)) return;  // revoked meanwhile
  LeaseRecord& record = **found;
  const bool waited_for = std::erase(record.calls.shrinks, answered.call) != 0;
  if (!waited_for && !erase_one(record.calls.late_shrinks, answered.call)) return;
  if (!answered.extents) {
    // The worker may still answer after a timeout; the broker then accepts the extents.
    const bool silent = answered.extents.error().code == Errc::TimedOut;
    silent ? record.calls.late_shrinks.push_back(answered.call)
           : note_call_answered(decision, record);
    if (waited_for) decision.reply(answered.call, std::unexpected(answered.extents.error()));
    return;
  }
  note_call_answered(decision, record);
  const auto given = returnable(decision.state, record, answered.pool, *answered.extents);
  if (given.size() != answered.extents->size()) {
    decision.warn(fmt::format(
        "worker returned extents of another lease or pool lease={} pool={} returned={} accepted={}",
        to_string(record.id()), name(answered.pool), answered.extents->size(), given.size()));
  }
  scrub_returned(decision, record, given);
  recharge(decision, record);
  if (waited_for) decision.reply(answered.call, resized(decision.state, record, answered.pool));
}

}  // namespace leasehold
