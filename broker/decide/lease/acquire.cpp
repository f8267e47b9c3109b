#include "broker/decide/lease/acquire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "broker/decide/lease/grant.hpp"
#include "broker/decide/lease/succession.hpp"
#include "broker/decide/tenant/cell.hpp"
#include "broker/decide/tenant/keys.hpp"
#include "broker/decide/worker/choose_worker.hpp"
#include "broker/decide/worker/unavailable.hpp"
#include "broker/decide/worker/worker_replace.hpp"

namespace leasehold {
namespace {

/// Callers give up after 10 s. A service manager starts a successor within milliseconds; a large
/// model takes longer to load than any call may wait.
constexpr std::chrono::milliseconds kWaitForSuccessor{2'000};
constexpr std::chrono::milliseconds kAskForSuccessor{20};

/// Returns the revoked lease that this acquire replaces. If that lease already has a replacement
/// that was revoked too, returns the replacement. Nothing for a lease that is not revoked.
Result<std::optional<LeaseId>> find_replaced_lease(State& state,
                                                   const wire::LeaseAcquire& acquire) {
  if (!acquire.replaces) return std::nullopt;
  const auto found = state.leases.find(*acquire.replaces);
  if (!found && found.error().code == Errc::StaleGeneration) return std::nullopt;
  const bool is_own =
      found && (*found)->scope == wire::LeaseScope::Tenant && (*found)->tenant == acquire.tenant;
  if (!is_own) {
    return fail(Errc::UnknownLease,
                fmt::format("tenant {} has no lease {} to replace; acquire without it",
                            acquire.tenant.value, to_string(*acquire.replaces)));
  }
  const LeaseRecord& old = **found;
  // Use the replacement, which may have ended before the holder's requests moved to it.
  const LeaseRecord* last = old.replaced_by ? state.leases.find_open(*old.replaced_by) : &old;
  if (last == nullptr || !last->is(LeaseState::Revoked) || last->replaced_by) return std::nullopt;
  return last->id();
}

/// True if no worker fits, and one may come. False if the named worker runs but serves another
/// model.
bool may_wait_for_worker(const State& state, const wire::LeaseAcquire& acquire,
                         const Result<Worker*>& chosen) {
  if (chosen) return false;
  const bool is_named = acquire.worker && !state.workers.is_serving(*acquire.worker);
  return chosen.error().code == Errc::NoModelLoaded ||
         (chosen.error().code == Errc::UnknownWorker && is_named);
}

Result<Worker*> choose_for(State& state, const Caller& caller, const wire::LeaseAcquire& acquire) {
  WantedWorker wanted{.model = acquire.model,
                      .text_identity = acquire.text_identity,
                      .min_context = acquire.min_context};
  wanted.name = acquire.worker ? current_name(state, acquire.worker)
                               : adopting_worker(state, caller, acquire, wanted);
  const bool is_open = !wanted.model && !wanted.text_identity;
  if (acquire.replaces && is_open && !acquire.worker)
    wanted.model = content_of_lease(state, *acquire.replaces);
  return choose_worker(state, wanted);
}

/// The caller's lease for which the acquire can wait until a successor of its worker is ready; null
/// if there is none.
const LeaseRecord* find_awaited(State& state, const Caller& caller,
                                const wire::LeaseAcquire& acquire) {
  const LeaseRecord* old = find_adoptable(state, caller, acquire);
  if (old == nullptr) return nullptr;
  const bool is_named =
      !acquire.worker || *acquire.worker == state.workers.find(old->worker())->name;
  return is_named ? old : nullptr;
}

Error no_successor(const State& state, const LeaseRecord& old) {
  return {.code = Errc::NoModelLoaded,
          .detail = fmt::format("worker {} ended, and the memory of lease {} is kept for its "
                                "successor; retry in {} ms",
                                state.workers.find(old.worker())->name, to_string(old.id()),
                                kAskForSuccessor.count()),
          .retry_after_ms = kAskForSuccessor.count()};
}

Result<void> check_acquire(const Decision& decision, const Caller& caller,
                           const wire::LeaseAcquire& acquire) {
  if (decision.state.stopping) return std::unexpected(broker_stopping());
  const Tenant* tenant = TRY(tenant_of_acquire(decision, caller, acquire));
  if (tenant->draining) return std::unexpected(tenant_draining(acquire.tenant));
  TRY(require_ceiling(decision, *tenant));
  if (acquire.ttl_ms < 0) {
    return fail(Errc::BadRequest,
                fmt::format("ttl_ms is {}; it must be 0 or more", acquire.ttl_ms));
  }
  return {};
}

/// Grants, refuses, or waits for a successor if it `may_wait`.
CallResult decide_acquire(Decision& decision, const Caller& caller,
                          const wire::LeaseAcquire& acquire, bool may_wait) {
  State& state = decision.state;
  TRY(check_acquire(decision, caller, acquire));
  GrantTerms terms{.api_key = key_of(acquire)};
  terms.replaces = TRY(find_replaced_lease(state, acquire));
  const Result<Worker*> chosen = choose_for(state, caller, acquire);
  const LeaseRecord* old =
      may_wait_for_worker(state, acquire, chosen) ? find_awaited(state, caller, acquire) : nullptr;
  if (old == nullptr) {
    terms.worker = TRY(chosen);
    return grant_tenant_lease(decision, caller, acquire, terms);
  }
  const TimePoint until = decision.now + kWaitForSuccessor;
  const bool waits =
      may_wait && state.waiting.by_lease.try_emplace(old->id(), caller, acquire, until).second;
  if (!waits) return std::unexpected(no_successor(state, *old));
  if (state.waiting.first_end == TimePoint{}) state.waiting.first_end = until;
  return std::nullopt;
}

bool still_waits(Decision& decision, const WaitingAcquire& waiting) {
  State& state = decision.state;
  return waiting.until > decision.now && !state.stopping &&
         find_awaited(state, waiting.caller, waiting.acquire) != nullptr &&
         may_wait_for_worker(state, waiting.acquire,
                             choose_for(state, waiting.caller, waiting.acquire));
}

std::vector<WaitingAcquire> take_due(Decision& decision) {
  WaitingAcquires& waiting = decision.state.waiting;
  std::vector<WaitingAcquire> due;
  std::erase_if(waiting.by_lease, [&](const auto& entry) {
    const bool is_due = !still_waits(decision, entry.second);
    if (is_due) due.push_back(entry.second);
    return is_due;
  });
  waiting.first_end = {};
  for (const auto& [lease, each] : waiting.by_lease) {
    const bool is_first = waiting.first_end == TimePoint{} || each.until < waiting.first_end;
    if (is_first) waiting.first_end = each.until;
  }
  return due;
}

}  // namespace

CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::LeaseAcquire& acquire) {
  return decide_acquire(decision, caller, acquire, true);
}

bool reassign_waiting(Decision& decision, const Caller& caller, CallId first) {
  for (auto& [lease, waiting] : decision.state.waiting.by_lease) {
    if (waiting.caller.call != first) continue;
    waiting.caller = caller;
    waiting.caller.call = first;
    set_holder(decision, caller, decision.state.leases.at(lease));
    return true;
  }
  return false;
}

/// Loops because a grant may end the retention for which another acquire waits.
void settle_waiting_acquires(Decision& decision) {
  const TimePoint first_end = decision.state.waiting.first_end;
  const bool is_due = first_end != TimePoint{} && first_end <= decision.now;
  decision.waits_may_end = decision.waits_may_end || is_due;
  while (std::exchange(decision.waits_may_end, false)) {
    for (const WaitingAcquire& each : take_due(decision)) {
      const CallResult outcome = decide_acquire(decision, each.caller, each.acquire, false);
      if (!outcome) decision.reply(each.caller.call, std::unexpected(outcome.error()));
    }
  }
}

}  // namespace leasehold
