#include "broker/decide/core.hpp"

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/journal_decision.hpp"
#include "broker/decide/lease/acquire.hpp"
#include "broker/decide/lease/grant.hpp"
#include "broker/decide/tenant/cell.hpp"
#include "broker/decide/tenant/publish.hpp"
#include "broker/decide/tenant/quota.hpp"
#include "broker/decide/worker/worker_replace.hpp"
#include "common/expects.hpp"

namespace leasehold {
namespace {

/// These calls grant a lease to the caller.
template <class Message>
constexpr bool kGrants =
    std::is_same_v<Message, wire::LeaseAcquire> || std::is_same_v<Message, wire::LeaseReplace>;

/// Answers a repeated call. A repeated acquire also makes the caller the holder; otherwise the
/// answer would name a lease that another connection holds.
template <class Message>
Result<Answer> replay_answer(Decision& decision, const Caller& caller, Result<Answer> answer) {
  if constexpr (kGrants<Message>) {
    if (answer) return reassign_holder(decision, caller, *std::move(answer));
  }
  return answer;
}

/// These calls are idempotent, so their replies are not cached.
template <class Message>
constexpr bool kIdempotent =
    std::is_same_v<Message, wire::LeaseRenew> || std::is_same_v<Message, wire::LeaseHold>;

/// True if the call must be decided now. Otherwise it was answered from the cache, or it waits for
/// an earlier call with the same request id.
template <class Message>
bool admit(Decision& decision, const Caller& caller) {
  if constexpr (kIdempotent<Message>) return true;
  RequestBook::Lookup outcome = decision.state.requests.begin(caller);
  if (auto* replayed = std::get_if<RequestBook::Replayed>(&outcome)) {
    decision.add(effect::Reply{
        caller.call, replay_answer<Message>(decision, caller, std::move(replayed->answer))});
  }
  if (const auto* joined = std::get_if<RequestBook::Joined>(&outcome)) {
    if (kGrants<Message>) {
      reassign_pending_holder(decision, caller, joined->first);
    }
  }
  if (std::holds_alternative<RequestBook::Conflict>(outcome)) {
    decision.add(effect::Reply{
        caller.call,
        fail(Errc::RequestIdConflict, "request id " + caller.request_id.value +
                                          " was used for a different call; choose a new one")});
  }
  return std::holds_alternative<RequestBook::New>(outcome);
}

template <class Message>
void handle(Decision& decision, const Call<Message>& call) {
  if (!admit<Message>(decision, call.caller)) return;
  const CallResult outcome = decide_call(decision, call.caller, call.message);
  if (!outcome) return decision.reply(call.caller.call, std::unexpected(outcome.error()));
  if (*outcome) decision.reply(call.caller.call, **outcome);
}

template <class Happened>
void handle(Decision& decision, const Happened& happened) {
  decide_event(decision, happened);
}

/// True for device memory that no lease lists: it is held for a worker, or being released after the
/// worker's exit.
bool is_free_of_leases(const State& state, ExtentId id, const ExtentRecord& record) {
  if (record.state == ExtentState::Held) return true;
  if (record.state != ExtentState::Scrubbing) return false;
  const LeaseRecord* last = state.leases.find_open(record.lease);
  if (last == nullptr) return true;
  const Worker* worker = state.workers.find(record.lent_to);
  const bool released =
      record.lent_to != AttachmentId{} && (worker == nullptr || worker->state == WorkerState::Gone);
  return released && std::ranges::find(last->extents, id) == last->extents.end();
}

/// Ensures that every extent in use is listed by its lease, quarantined, or held.
void check_ownership(State& state) {
  std::size_t listed = 0;
  state.leases.for_each_open([&](const LeaseRecord& record) {
    for (const ExtentId extent : record.extents) {
      const ExtentRecord* found = state.extents.find(extent);
      ensures(found != nullptr && found->lease == record.id(), "no lease refers to a free extent");
      ++listed;
    }
  });
  std::size_t expected = 0;
  for (const auto& [id, record] : state.extents.records()) {
    if (record.state == ExtentState::Quarantined) continue;
    if (is_free_of_leases(state, id, record)) continue;
    ++expected;
  }
  ensures(listed == expected, "every extent in use is listed by its lease");
}

/// The cost of the checks is linear in the number of objects. Above this number, only one decision
/// in kCheckedOneIn is checked.
constexpr std::size_t kCheckedAlways = 512;
constexpr std::uint64_t kCheckedOneIn = 1024;

void check_invariants(State& state) {
  ++state.decisions;
  const std::size_t objects = state.leases.open_count() + state.extents.records().size();
  if (objects > kCheckedAlways && state.decisions % kCheckedOneIn != 0) return;
  state.extents.check_conservation();
  state.weights.check_conservation();
  check_ownership(state);
}

}  // namespace

std::vector<Effect> decide(State& state, const Event& event, TimePoint now) {
  Decision decision(state, now);
  if (!std::holds_alternative<BrokerStalled>(event)) apply_deadlines(decision);
  std::visit([&decision](const auto& happened) { handle(decision, happened); }, event);
  settle_replacements(decision);
  end_outdated_texts(decision);
  publish_lost_texts(decision);  // first, because it may take memory that acquires wait for
  settle_waiting_acquires(decision);
  check_invariants(state);
  const std::set<TenantId> tenants = tenants_touched(decision);
  journal_decision(decision, state.extents.extent_size_bytes());
  settle_quotas(decision, tenants);
  tell_agent(decision, tenants);
  return decision.take_effects();
}

}  // namespace leasehold
