#include "broker/decide/tenant/publish.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "broker/decide/lease/grant.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/memory/reclaim.hpp"
#include "broker/decide/memory/reserves.hpp"
#include "broker/decide/tenant/adapters.hpp"
#include "broker/decide/worker/choose_worker.hpp"
#include "broker/decide/worker/unavailable.hpp"

namespace leasehold {
namespace {

/// Extents of all shared leases on the worker, until they are free.
std::uint64_t shared_extents_on(const State& state, const Worker& worker) {
  std::uint64_t extents = 0;
  for (const LeaseId id : state.leases.index().of(worker.id).open) {
    const LeaseRecord& record = *state.leases.find_open(id);
    if (record.scope == wire::LeaseScope::Shared) extents += kv_extents(state, record);
  }
  return extents;
}

/// Published text is charged to no tenant, so it has its own limit.
Result<void> require_shared_room(const State& state, const Worker& worker, std::uint32_t extents,
                                 TimePoint now) {
  const std::uint64_t per_extent = worker.blocks_per_extent;
  const std::uint64_t held = shared_extents_on(state, worker) * per_extent;
  const std::uint32_t most = state.config.max_shared_blocks;
  if (held + extents * per_extent > most) {
    return std::unexpected(
        Error{Errc::QuotaBlocks,
              fmt::format("published texts on worker {} hold {} blocks, {} more are needed and "
                          "the limit is {}",
                          worker.name, held, extents * per_extent, most),
              FailureScope::Shared});
  }
  return require_room(state, {.tenant = {}, .worker = worker.id, .extents = extents}, now);
}

journal::RequestKey request_of(const LostText& text) {
  return {text.uid, "", journal::digest(text.text)};
}

/// The publisher's live lease on the worker that holds this text or is being filled with it; null
/// if there is none.
const LeaseRecord* find_published(const State& state, const Worker& worker, const LostText& text) {
  for (const LeaseId id : state.leases.index().of(worker.id).open) {
    const LeaseRecord& record = *state.leases.find_open(id);
    const bool is_shared = record.scope == wire::LeaseScope::Shared;
    const bool is_same = record.request == request_of(text) && record.model == text.adapter &&
                         record.adapter_version == text.adapter_version;
    if (is_shared && record.is(LeaseState::Live) && is_same) return &record;
  }
  return nullptr;
}

wire::PrefixPublished published(const LeaseRecord& record) {
  return {.lease = record.id(), .tokens = record.text_tokens, .blocks = record.charged_blocks};
}

/// Publishes the text under the newest version of a shared adapter.
Result<void> set_adapter(const State& state, const AdapterName& name, LostText& text) {
  const journal::AdapterRow* adapter = state.adapters.find(name);
  if (adapter == nullptr) return not_registered(name);
  if (!adapter->tenant.value.empty()) {
    return fail(
        Errc::BadRequest,
        fmt::format("adapter {} belongs to tenant {}, and every tenant may read a published "
                    "text; name a shared adapter",
                    name.value, adapter->tenant.value));
  }
  text.adapter = name.value;
  text.adapter_version = adapter->version;
  return {};
}

/// Errors: UnknownAdapter for a text of an adapter that was replaced or removed.
Result<void> require_newest(const State& state, const LostText& text) {
  if (text.adapter.empty()) return {};
  const journal::AdapterRow* newest = state.adapters.find_for(std::nullopt, {text.adapter});
  if (newest != nullptr && newest->version == text.adapter_version) return {};
  return std::unexpected(unknown_adapter({text.adapter}));
}

/// Opens a shared lease without memory. Precondition: there is a free slot.
LeaseRecord& open_shared(Decision& decision, const Worker& worker, const LostText& text) {
  LeaseRecord& record = decision.state.leases.open(worker.id, wire::LeaseScope::Shared);
  record.granted_at = decision.now;
  record.part = text.name;
  record.model = text.adapter;
  record.adapter_version = text.adapter_version;
  record.text = text.text;
  record.request = request_of(text);
  decision.add(effect::PublishGrant{record.id(), TimePoint{}});
  record_lease(decision, record);
  return record;
}

/// False if it must be tried again later: no suitable worker is ready, or there is no room yet.
bool publish_again(Decision& decision, const LostText& text) {
  State& state = decision.state;
  const auto chosen = choose_worker(state, {.name = text.worker});
  if (!chosen || (*chosen)->model != text.model) return false;
  const Worker& worker = **chosen;
  if (find_published(state, worker, text) != nullptr) return true;
  Result<void> room = require_newest(state, text);
  if (room) room = require_shared_room(state, worker, 1, decision.now);
  if (room) room = require_free_slot(decision);
  if (!room && is_retryable(room.error().code)) return false;
  if (room) {
    LeaseRecord& record = open_shared(decision, worker, text);
    grant_extents(decision, record, {.call = kInternalCall, .count = 1});
  } else {
    decision.warn(fmt::format("text is not published again worker={} name={} error={}", worker.name,
                              text.name, name(room.error().code)));
  }
  return true;
}

CallResult answer_duplicate(const LeaseRecord& record) {
  if (record.charged_blocks > 0) return Answer{published(record)};
  return fail(Errc::QueueFull, fmt::format("lease {} is computing this text; retry when `brokerctl "
                                           "prefix` shows it as Live",
                                           to_string(record.id())));
}

/// The adapters that got or lost a version, or a lease.
std::set<AdapterName> adapters_changed(const Decision& decision) {
  std::set<AdapterName> changed(decision.touched.adapters.begin(), decision.touched.adapters.end());
  for (const LeaseId id : decision.touched.leases) {
    const LeaseRecord* record = decision.state.leases.find_open(id);
    if (record == nullptr || record->is(LeaseState::Live)) continue;
    if (const auto adapter = record->adapter()) changed.insert(*adapter);
  }
  return changed;
}

/// True if no request reads the text and no later one will: a worker keeps the lease of a version
/// until its last request has ended, and gives new requests the newest version. Precondition: the
/// text is one of an adapter.
bool is_outdated(const State& state, const LeaseRecord& text) {
  const AdapterName adapter = *text.text_adapter();
  const journal::AdapterRow* newest = state.adapters.find_for(std::nullopt, adapter);
  if (newest != nullptr && newest->version == text.adapter_version) return false;
  return std::ranges::none_of(state.leases.index().adapters_of({}), [&](LeaseId id) {
    const LeaseRecord& record = *state.leases.find_open(id);
    return record.is(LeaseState::Live) && record.worker() == text.worker() &&
           record.adapter() == adapter && record.adapter_version == text.adapter_version;
  });
}

template <class Predicate>
void end_outdated_where(Decision& decision, Predicate matches) {
  const State& state = decision.state;
  revoke_leases(decision,
                open_leases_where(decision.state,
                                  [&](const LeaseRecord& record) {
                                    const auto adapter = record.text_adapter();
                                    return adapter && record.is(LeaseState::Live) &&
                                           matches(*adapter) && is_outdated(state, record);
                                  }),
                RevokeReason::ModelUnloaded);
}

/// True if this decision closes a lease. A decision does not reuse a slot that it has closed: if
/// the broker died before it stored the Fenced word, the table would have the old lease's open word
/// and the journal the new lease's row.
bool has_closed_lease(const Decision& decision) {
  return std::ranges::any_of(decision.touched.leases, [&decision](LeaseId id) {
    return decision.state.leases.find_open(id) == nullptr;
  });
}

}  // namespace

CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::PrefixPublish& publish) {
  State& state = decision.state;
  if (state.stopping) return std::unexpected(broker_stopping());
  const Worker& worker = *TRY(choose_worker(state, {.name = publish.worker}));
  LostText text{.uid = caller.uid, .name = publish.name, .text = publish.text};
  if (publish.adapter) TRY(set_adapter(state, *publish.adapter, text));
  if (const LeaseRecord* same = find_published(state, worker, text)) return answer_duplicate(*same);
  if (const auto room = require_shared_room(state, worker, 1, decision.now); !room)
    return refuse_or_reclaim(decision, caller.call, {{}, worker.id, 1}, room.error());
  TRY(require_free_slot(decision));
  LeaseRecord& record = open_shared(decision, worker, text);
  record_operator_action(
      decision,
      {.uid = caller.uid, .action = "publish", .object = "lease:" + to_string(record.id())});
  grant_extents(decision, record, {.call = caller.call, .count = 1});
  return std::nullopt;  // answered after the fill
}

void keep_lost_text(State& state, const LeaseRecord& record) {
  const Worker* worker = state.workers.find(record.worker());
  const RevokeReason reason = reason_of(record.lease);
  const bool is_lost = reason == RevokeReason::WorkerGone || reason == RevokeReason::WorkerHung;
  const bool was_filled = record.charged_blocks > 0 && !record.text.empty();
  if (worker == nullptr || !is_lost || !was_filled) return;
  if (state.lost_texts.size() == kMaxLostTexts) state.lost_texts.erase(state.lost_texts.begin());
  state.lost_texts.push_back({.worker = worker->name,
                              .model = worker->model,
                              .uid = record.request.uid,
                              .name = record.part,
                              .text = record.text,
                              .adapter = record.model,
                              .adapter_version = record.adapter_version});
}

void publish_lost_texts(Decision& decision) {
  State& state = decision.state;
  if (state.lost_texts.empty() || state.stopping || has_closed_lease(decision)) return;
  for (LostText& text : std::exchange(state.lost_texts, {})) {
    if (!publish_again(decision, text)) state.lost_texts.push_back(std::move(text));
  }
}

void end_outdated_texts(Decision& decision) {
  const std::set<AdapterName> changed = adapters_changed(decision);
  if (changed.empty()) return;
  end_outdated_where(decision,
                     [&](const AdapterName& adapter) { return changed.contains(adapter); });
}

void end_all_outdated_texts(Decision& decision) {
  end_outdated_where(decision, [](const AdapterName&) { return true; });
}

void start_fill(Decision& decision, LeaseRecord& record, CallId call) {
  record.acquired = true;
  record.calls.open = call;
  decision.add(effect::SendFill{record.worker(),
                                {.lease = record.id(),
                                 .text = record.text,
                                 .adapter = record.text_adapter(),
                                 .adapter_version = record.adapter_version}});
}

CallResult grow_shared(Decision& decision, const Caller& caller, LeaseRecord& record,
                       const wire::LeaseGrow& grow) {
  if (!record.calls.open || grow.pool != MemoryPool::Kv) {
    return fail(
        Errc::PermissionDenied,
        fmt::format("lease {} holds published text and does not grow", to_string(record.id())));
  }
  const Worker& worker = *decision.state.workers.find(record.worker());
  const auto room = require_shared_room(decision.state, worker, grow.extents, decision.now);
  if (!room)
    return refuse_or_reclaim(decision, caller.call, {{}, worker.id, grow.extents}, room.error());
  grant_extents(decision, record, {.call = caller.call, .count = grow.extents});
  return std::nullopt;
}

/// If the worker did not compute the text, the lease ends, and the caller gets the reason.
void decide_event(Decision& decision, const FillAnswered& answered) {
  const auto found = decision.state.leases.find(answered.lease);
  if (!found || !(*found)->is(LeaseState::Live) || !(*found)->calls.open) return;
  LeaseRecord& record = **found;
  const CallId call = *std::exchange(record.calls.open, std::nullopt);
  if (!answered.filled) {
    if (call == kInternalCall)
      decision.warn(fmt::format("text is not published again name={} error={}", record.part,
                                name(answered.filled.error().code)));
    revoke_leases(decision, std::vector{record.id()}, RevokeReason::Released);
    return decision.reply(call, std::unexpected(answered.filled.error()));
  }
  record.charged_blocks =
      std::max(1u, answered.filled->blocks);  // the worker's own figure, shown to operators only
  decision.touch(record.id());
  record.text_tokens = answered.filled->tokens;
  decision.reply(call, Answer{published(record)});
}

}  // namespace leasehold
