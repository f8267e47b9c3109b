#include "broker/decide/worker/worker_replace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/grant.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/worker/choose_worker.hpp"
#include "broker/decide/worker/unavailable.hpp"

namespace leasehold {
namespace {

/// The files that the worker's engine leases cover. The layout is not compared, because it depends
/// on the arithmetic.
using Files = std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::int64_t>>;
Files weights_of(const State& state, const Worker& worker) {
  Files files;
  for (const LeaseId id : state.leases.leases_on(worker.id)) {
    const LeaseRecord& record = *state.leases.find_open(id);
    if (record.scope != wire::LeaseScope::Engine) continue;
    const auto region = state.weights.regions().find(record.region);
    if (region == state.weights.regions().end()) continue;
    const WeightsKey& key = region->second.key;
    files.emplace(key.file_device, key.file_inode, key.file_size_bytes, key.file_mtime_ns);
  }
  return files;
}

/// Why `by` cannot continue texts of `old`, a worker of an earlier version that announces no
/// identity; empty if it can. The two must serve the same file.
std::string why_not_after_unidentified(const State& state, const Worker& old, const Worker& by,
                                       bool any_arithmetic) {
  if (old.model != by.model || weights_of(state, old) != weights_of(state, by))
    return fmt::format("worker {} serves {}, from another file", by.name, model_label(by));
  const bool are_known = !old.arithmetic.empty() && !by.arithmetic.empty();
  if (any_arithmetic || !are_known || old.arithmetic == by.arithmetic) return {};
  return fmt::format(
      "worker {} computes in {} and worker {} in {}, where --any-arithmetic continues", old.name,
      old.arithmetic, by.name, by.arithmetic);
}

/// Why texts of `old` cannot continue on `by`; empty if they can.
std::string why_not_after(const State& state, const Worker& old, const Worker& by,
                          bool any_arithmetic) {
  WantedWorker wanted{.min_context = old.max_context};
  if (old.text_identity && any_arithmetic) wanted.model = ModelName{content_key(old)};
  if (old.text_identity && !any_arithmetic) wanted.text_identity = old.text_identity;
  if (!serves(by, wanted)) return why_not(by, wanted);
  if (old.text_identity) return {};
  return why_not_after_unidentified(state, old, by, any_arithmetic);
}

Result<void> require_same_service(const State& state, const Worker& old, const Worker& by,
                                  bool any_arithmetic) {
  const std::string why = why_not_after(state, old, by, any_arithmetic);
  if (!why.empty()) {
    return fail(Errc::BadRequest,
                fmt::format("the texts of worker {}, which serves {}, cannot continue: {}; start a "
                            "worker of the same model and options",
                            old.name, model_label(old), why));
  }
  if (old.blocks_per_extent == by.blocks_per_extent) return {};
  return fail(Errc::BadRequest,
              fmt::format("an extent has {} blocks on worker {} and {} on worker {}; start one "
                          "with the same options for KV memory",
                          old.blocks_per_extent, old.name, by.blocks_per_extent, by.name));
}

/// Refuses a second successor for one worker, and chains of replacements.
Result<void> require_unreplaced(const State& state, const Worker& old, const Worker& by) {
  if (old.id == by.id) return fail(Errc::BadRequest, "a worker does not replace itself");
  if (old.replacement && old.replacement->by != by.id) {
    const Worker* other = state.workers.find(old.replacement->by);
    return fail(Errc::IllegalTransition,
                fmt::format("worker {} is replaced by worker {} already; undrain it first",
                            old.name, other == nullptr ? "?" : other->name));
  }
  for (const auto& [id, worker] : state.workers.all()) {
    const bool is_running = worker.state != WorkerState::Gone && worker.replacement;
    if (!is_running || worker.replacement->by != old.id) continue;
    return fail(
        Errc::IllegalTransition,
        fmt::format("worker {} replaces worker {}; stop that one first", old.name, worker.name));
  }
  return {};
}

std::vector<LeaseId> tenant_leases_on(State& state, AttachmentId worker) {
  std::vector<LeaseId> leases = state.leases.leases_on(worker);
  std::erase_if(leases, [&state](LeaseId id) {
    const LeaseRecord& record = state.leases.at(id);
    return record.scope != wire::LeaseScope::Tenant || !record.is(LeaseState::Live);
  });
  return leases;
}

/// Refuses the acquires in flight: their holders have not started a request, so they lose nothing.
void refuse_acquires(Decision& decision, const Worker& old, const Worker& by) {
  for (const LeaseId id : tenant_leases_on(decision.state, old.id)) {
    LeaseRecord& record = decision.state.leases.at(id);
    if (record.is_acquiring())
      abandon_acquire(decision, record, worker_replaced(old.name, by.name));
  }
}

void notify_holders(Decision& decision, std::span<const LeaseId> leases, const Worker& by) {
  for (const LeaseId id : leases) {
    const LeaseRecord& record = decision.state.leases.at(id);
    if (!record.acquired || record.holder == ConnectionId{}) continue;
    decision.add(effect::NotifyDraining{record.holder, {.lease = id, .successor = by.name}});
  }
}

void record_replacement(Decision& decision, const Worker& old, std::string_view state) {
  const Replacement& mark = *old.replacement;
  const Worker* by = decision.state.workers.find(mark.by);
  decision.record(events::WorkerReplacement{.worker = old.name,
                                            .by = by == nullptr ? old.name : by->name,
                                            .state = std::string(state),
                                            .leases_moved = mark.moved,
                                            .leases_ended = state == "done" ? mark.ended(0) : 0});
}

bool has_tenant_leases(const State& state, AttachmentId worker) {
  return std::ranges::any_of(state.leases.index().of(worker).open, [&state](LeaseId id) {
    const LeaseRecord& record = *state.leases.find_open(id);
    return record.scope == wire::LeaseScope::Tenant && !record.is(LeaseState::Fenced);
  });
}

bool serves(const Worker* worker) {
  return worker != nullptr && worker->state == WorkerState::Ready;
}

}  // namespace

CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::WorkerReplace& replace) {
  State& state = decision.state;
  if (state.stopping) return std::unexpected(broker_stopping());
  Worker& old = *TRY(find_worker(state, replace.worker));
  const Worker& by = *TRY(find_worker(state, replace.by));
  if (old.resuming) return std::unexpected(worker_reconnecting(old.name));
  TRY(require_unreplaced(state, old, by));
  TRY(choose_worker(state, {.name = replace.by}));
  TRY(require_same_service(state, old, by, replace.any_arithmetic));
  refuse_acquires(decision, old, by);
  std::vector<LeaseId> leases = tenant_leases_on(state, old.id);
  const bool is_new = !old.replacement;
  if (is_new) {
    old.replacement = Replacement{
        .by = by.id, .until = TimePoint{}, .leases = static_cast<std::uint32_t>(leases.size())};
    record_replacement(decision, old, "begun");
    send_admission(decision, old);
  }
  old.replacement->until = decision.now + std::chrono::milliseconds(replace.grace_ms);
  notify_holders(decision, leases, by);
  record_operator_action(decision,
                         {.uid = caller.uid, .action = "replace", .object = "worker:" + old.name});
  decision.add(effect::ReplyWhenJournaled{
      caller.call, Answer{wire::LeasesTouched{.leases = std::move(leases)}}});
  return std::nullopt;
}

Result<Worker*> successor_for(State& state, const LeaseRecord& old, bool any_arithmetic) {
  const Worker& worker = *state.workers.find(old.worker());
  const Worker* next = worker.replacement ? state.workers.find(worker.replacement->by) : nullptr;
  if (next == nullptr) {
    return fail(Errc::IllegalTransition,
                fmt::format("worker {} of lease {} is not being replaced; the lease goes on",
                            worker.name, to_string(old.id())));
  }
  if (const std::string why = why_not_after(state, worker, *next, any_arithmetic); !why.empty()) {
    return fail(Errc::IllegalTransition,
                fmt::format("the text of lease {} cannot continue: {}; let the request end",
                            to_string(old.id()), why));
  }
  return choose_worker(state, {.name = next->name});
}

std::optional<std::string> current_name(State& state, const std::optional<std::string>& wanted) {
  const Worker* named = wanted ? state.workers.find_serving(*wanted) : nullptr;
  if (named == nullptr || !named->replacement) return wanted;
  const Worker* next = state.workers.find(named->replacement->by);
  return next == nullptr ? wanted : next->name;
}

void drop_replacement(Decision& decision, Worker& worker) {
  if (!worker.replacement) return;
  record_replacement(decision, worker, "dropped");
  worker.replacement.reset();
  send_admission(decision, worker);
}

void expire_replacements(Decision& decision) {
  State& state = decision.state;
  for (const auto& [id, each] : state.workers.all()) {
    const bool is_due = each.replacement && each.replacement->until != TimePoint{} &&
                        each.replacement->until <= decision.now;
    if (!is_due) continue;
    state.workers.find(id)->replacement->until = TimePoint{};
    revoke_leases(decision, tenant_leases_on(state, id), RevokeReason::WorkerReplaced);
  }
}

void settle_replacements(Decision& decision) {
  State& state = decision.state;
  for (const auto& [id, each] : state.workers.all()) {
    if (!each.replacement) continue;
    Worker& old = *state.workers.find(id);
    const bool is_running = old.state == WorkerState::Attached || old.state == WorkerState::Ready;
    if (is_running && !serves(state.workers.find(old.replacement->by))) {
      drop_replacement(decision, old);
      continue;
    }
    if (old.replacement->done || has_tenant_leases(state, id)) continue;
    old.replacement->done = true;
    old.replacement->until = TimePoint{};
    record_replacement(decision, old, "done");
  }
}

}  // namespace leasehold
