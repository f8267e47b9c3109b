#include "broker/decide/lease/succession.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/grant.hpp"
#include "broker/decide/lease/holder.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/memory/reserves.hpp"
#include "broker/decide/tenant/cell.hpp"
#include "broker/decide/worker/choose_worker.hpp"
#include "broker/decide/worker/unavailable.hpp"
#include "broker/decide/worker/worker_replace.hpp"

namespace leasehold {
namespace {

constexpr int kGraceFactor = 6;  // exceeds kUnmapTimeoutFactor in timers.cpp
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

/// True if KV memory of one worker can be used by the other.
bool shares_kv(const Worker& worker, const Worker& old) {
  return worker.uid == old.uid && worker.kv_identity == old.kv_identity &&
         !old.kv_identity.empty() && worker.blocks_per_extent == old.blocks_per_extent;
}

/// True if the worker replaces `old` and can use its KV memory.
bool is_successor(const Worker& worker, const Worker& old) {
  const bool is_named = worker.name == old.name;
  const bool is_chosen = old.replacement && old.replacement->by == worker.id;
  return (is_named || is_chosen) && shares_kv(worker, old);
}

bool is_handover(const LeaseRecord& by) {
  return by.replace_mode == wire::RebindMode::Failover;
}

/// Drains the old lease, whose requests move to the new one on the same worker. If an operator
/// already drains it, the earlier deadline applies.
void drain_replaced(Decision& decision, const LeaseRecord& by) {
  LeaseRecord* old = decision.state.leases.find(*by.replaces).value_or(nullptr);
  if (old == nullptr || !old->is(LeaseState::Live) || is_reclaimed(*old)) return;
  TimePoint until = decision.now + kReplaceGrace;
  if (old->drain_deadline != TimePoint{}) until = std::min(until, old->drain_deadline);
  start_drain(decision, *old, {.until = until}, {});
}

/// Asks for the extent back that the new worker mapped first: with the memory handed over, the
/// lease has one extent more than its quota covers.
void settle_handed_over(Decision& decision, LeaseRecord& by) {
  set_deadline(decision, by, by.deadline_after(decision.now));
  recharge(decision, by);
  if (by.adopted_extents > 0) ask_for_extents(decision, by, MemoryPool::Kv, 1);
}

void answer(Decision& decision, LeaseRecord& by, CallId call) {
  by.acquired = true;
  if (is_handover(by)) {
    settle_handed_over(decision, by);
  } else if (by.replace_mode) {
    drain_replaced(decision, by);
  }
  decision.reply(call, acquired_answer(decision.state, by));
}

void revoke_for_handover(Decision& decision, const LeaseRecord& old) {
  Worker& worker = *decision.state.workers.find(old.worker());
  if (worker.replacement) ++worker.replacement->moved;
  revoke_leases(decision, std::vector{old.id()}, RevokeReason::WorkerReplaced, HolderNotice::None);
}

/// True if the memory of `old` will be retained or is still mapped, so that it may arrive later.
bool may_arrive(const Decision& decision, const LeaseRecord& old) {
  if (is_retained(decision.state, old)) return true;
  return old.is(LeaseState::Revoked) && retains_memory(decision, old);
}

/// Ends the old lease, and gives its memory to the new one once no worker maps it. Answers the call
/// without the memory once it cannot arrive any more. Precondition: `calls.open` is set.
void hand_over(Decision& decision, LeaseRecord& by) {
  State& state = decision.state;
  const LeaseRecord* old = state.leases.find_open(*by.replaces);
  if (old != nullptr && old->is(LeaseState::Live)) revoke_for_handover(decision, *old);
  const bool arrives =
      old != nullptr && is_memory_awaited(state, *old) && may_arrive(decision, *old);
  if (!arrives) return answer(decision, by, *std::exchange(by.calls.open, std::nullopt));
  if (!is_retained(state, *old) || !is_unmapped_everywhere(state, *old)) return;
  const CallId call = *std::exchange(by.calls.open, std::nullopt);
  const Adoption adoption{.from = old->id(), .extents = retained_extents(state, *old)};
  const auto adopted = adopt_extents(decision, adoption, adoption.extents.size(), by);
  grant_extents(decision, by, {.call = call, .adopted = adopted});
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
      .scavenger = old.scavenger,
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

void begin_succession(Decision& decision, LeaseId old, LeaseRecord& by) {
  LeaseRecord& replaced = decision.state.leases.at(old);
  replaced.replaced_by = by.id();
  replaced.charged_to_replacement = replaced.is(LeaseState::Live);
  decision.touch(old);
  by.replaces = old;
}

void finish_succession(Decision& decision, LeaseRecord& by, CallId call) {
  if (!is_handover(by) || by.adopted_from) return answer(decision, by, call);
  by.calls.open = call;
  // Until the call is answered, the holder does not know the lease and cannot renew it.
  const TimePoint latest = decision.now + handover_grace(decision.state.config);
  set_deadline(decision, by, std::max(by.deadline_after(decision.now), latest));
  hand_over(decision, by);
}

void continue_succession(Decision& decision, const LeaseRecord& old) {
  if (!old.replaced_by) return;
  const LeaseRecord* by = decision.state.leases.find_open(*old.replaced_by);
  const bool waits = by != nullptr && by->is(LeaseState::Live) && by->calls.open;
  if (waits) hand_over(decision, decision.state.leases.at(by->id()));
}

void end_succession(Decision& decision, const LeaseRecord& by) {
  if (!by.replaces) return;
  const auto old = decision.state.leases.find(*by.replaces);
  if (!old) return;
  if ((*old)->is(LeaseState::Live)) (*old)->charged_to_replacement = false;
  if (!by.acquired) (*old)->replaced_by.reset();
  decision.touch((*old)->id());
}

Duration handover_grace(const BrokerConfig& config) {
  return kGraceFactor * config.timeouts.fence;
}

bool is_memory_awaited(const State& state, const LeaseRecord& old) {
  if (!old.replaced_by) return false;
  const LeaseRecord* by = state.leases.find_open(*old.replaced_by);
  if (by == nullptr || !by->is(LeaseState::Live) || by->acquired) return false;
  if (!is_handover(*by)) return false;
  return shares_kv(*state.workers.find(by->worker()), *state.workers.find(old.worker()));
}

LeaseRecord* find_adoptable(State& state, const Caller& caller, const wire::LeaseAcquire& acquire) {
  if (!acquire.replaces || state.retained.empty()) return nullptr;
  const auto found = state.leases.find(*acquire.replaces);
  if (!found || !is_retained(state, **found)) return nullptr;
  const bool is_own = (*found)->tenant == acquire.tenant && (*found)->holder == caller.connection;
  return is_own ? *found : nullptr;
}

Adoption find_adoption(State& state, const Caller& caller, const wire::LeaseAcquire& acquire,
                       const Worker& worker) {
  const LeaseRecord* old = find_adoptable(state, caller, acquire);
  if (old == nullptr) return {};
  const bool is_open = is_unmapped_everywhere(state, *old);
  if (!is_open || !is_successor(worker, *state.workers.find(old->worker())))
    return {.from = old->id()};
  const bool is_of_another_tier =
      old->scavenger && !is_of_scavenger(state, acquire.tenant, acquire.scavenger);
  if (is_of_another_tier) return {.from = old->id()};  // it may cover reserves
  const std::uint64_t charged = state.leases.index().charged(acquire.tenant);
  const std::uint64_t most = state.tenants.find(acquire.tenant)->policy.max_blocks;
  const std::uint64_t room = most - std::min(most, charged);
  return {.from = old->id(),
          .extents = retained_extents(state, *old),
          .blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(old->charged_blocks, room))};
}

std::optional<std::string> adopting_worker(State& state, const Caller& caller,
                                           const wire::LeaseAcquire& acquire,
                                           const WantedWorker& wanted) {
  const LeaseRecord* old = find_adoptable(state, caller, acquire);
  if (old == nullptr || !is_unmapped_everywhere(state, *old)) return std::nullopt;
  const Worker& before = *state.workers.find(old->worker());
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.gets_leases() && is_successor(worker, before) && serves(worker, wanted))
      return worker.name;
  }
  return std::nullopt;
}

ExtentDemand beyond(ExtentDemand demand, const Adoption& adoption) {
  const auto adopted = std::min<std::size_t>(demand.extents, adoption.extents.size());
  demand.extents -= static_cast<std::uint32_t>(adopted);
  return demand;
}

std::vector<ExtentId> adopt_extents(Decision& decision, const Adoption& adoption,
                                    std::uint64_t count, LeaseRecord& by) {
  if (!adoption.from) return {};
  State& state = decision.state;
  std::vector<ExtentId> adopted = adoption.extents;
  adopted.resize(std::min<std::uint64_t>(count, adopted.size()));
  for (const ExtentId extent : adopted) {
    state.extents.adopt(extent, by.id());
    std::erase(state.leases.at(*adoption.from).extents, extent);
    by.extents.push_back(extent);
    record_extent(decision, extent, &by);
  }
  if (!adopted.empty()) by.adopted_from = adoption.from;
  by.adopted_extents = static_cast<std::uint32_t>(adopted.size());
  end_retention(decision, {*adoption.from});
  return adopted;
}

}  // namespace leasehold
