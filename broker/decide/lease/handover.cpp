#include "broker/decide/lease/handover.hpp"

#include <algorithm>
#include <utility>

#include "broker/decide/lease/adopt.hpp"
#include "broker/decide/lease/grant.hpp"
#include "broker/decide/lease/revoke.hpp"

namespace leasehold {
namespace {

constexpr int kGraceFactor = 6;  // exceeds kUnmapTimeoutFactor in timers.cpp

/// Sets the deadline of the new lease. Until the call is answered, the holder does not know the
/// lease and cannot renew it.
void set_deadline(Decision& decision, LeaseRecord& by, TimePoint deadline) {
  by.deadline = deadline;
  decision.touch(by.id());
  decision.add(effect::SetDeadline{by.id(), deadline});
}

void answer_handover(Decision& decision, LeaseRecord& by) {
  const CallId call = *std::exchange(by.open_call, std::nullopt);
  by.acquired = true;
  finish_handover(decision, by);
  decision.reply(call, acquired_answer(decision.state, by));
}

void revoke_for_handover(Decision& decision, const LeaseRecord& old) {
  Worker& worker = *decision.state.workers.find(old.worker());
  if (worker.replacement) ++worker.replacement->moved;
  revoke_leases(decision, std::vector{old.id()}, RevokeReason::WorkerReplaced, HolderNotice::None);
}

/// Moves the kept memory of `old` to `by`. Precondition: the memory of `old` is kept, and no worker
/// maps it.
void adopt_from(Decision& decision, const LeaseRecord& old, LeaseRecord& by) {
  const CallId call = *std::exchange(by.open_call, std::nullopt);
  const Adoption adoption{.from = old.id(), .extents = kept_extents(decision.state, old)};
  const auto adopted = adopt_extents(decision, adoption, adoption.extents.size(), by);
  grant_extents(decision, by, {.call = call, .adopted = adopted});
}

void advance(Decision& decision, LeaseRecord& by) {
  State& state = decision.state;
  const LeaseRecord* old = state.leases.find_open(*by.replaces);
  if (old != nullptr && old->is(LeaseState::Live)) revoke_for_handover(decision, *old);
  if (old == nullptr || !is_awaited(state, *old)) return answer_handover(decision, by);
  if (is_kept(state, *old)) {
    if (is_unmapped_everywhere(state, *old)) adopt_from(decision, *old, by);
    return;
  }
  const bool comes = old->is(LeaseState::Revoked) && keeps_memory(decision, *old);
  if (!comes) answer_handover(decision, by);
}

}  // namespace

Duration handover_grace(const BrokerConfig& config) {
  return kGraceFactor * config.fence_timeout;
}

bool is_awaited(const State& state, const LeaseRecord& old) {
  if (!old.replaced_by) return false;
  const LeaseRecord* by = state.leases.find_open(*old.replaced_by);
  if (by == nullptr || !by->is(LeaseState::Live) || by->acquired) return false;
  if (by->replace_mode != wire::RebindMode::Failover) return false;
  return shares_kv(*state.workers.find(by->worker()), *state.workers.find(old.worker()));
}

bool begin_handover(Decision& decision, LeaseRecord& by, CallId call) {
  if (by.replace_mode != wire::RebindMode::Failover || by.adopted_from) return false;
  by.open_call = call;
  const TimePoint latest = decision.now + handover_grace(decision.state.config);
  set_deadline(decision, by, std::max(by.deadline_after(decision.now), latest));
  advance(decision, by);
  return true;
}

void continue_handover(Decision& decision, const LeaseRecord& old) {
  if (!old.replaced_by) return;
  const LeaseRecord* by = decision.state.leases.find_open(*old.replaced_by);
  const bool waits = by != nullptr && by->is(LeaseState::Live) && by->open_call;
  if (waits) advance(decision, decision.state.leases.at(by->id()));
}

/// Asks for the extent back that the new worker mapped first: with the memory handed over, the
/// lease has one extent more than its quota covers.
void finish_handover(Decision& decision, LeaseRecord& by) {
  set_deadline(decision, by, by.deadline_after(decision.now));
  recharge(decision, by);
  if (by.adopted_extents > 0) ask_for_extents(decision, by, MemoryPool::Kv, 1);
}

}  // namespace leasehold
